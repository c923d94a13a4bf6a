"""Clips with several texts, expanded to one row per text: for training pairs, queries and galleries."""

import hashlib
from dataclasses import replace
from typing import Literal

import numpy as np
import torch

from aadml.comparison.clips import Clips, Splits

WhichTexts = Literal["first", "drawn", "all"]


def every_text(clips: Clips) -> Clips:
    """Return the clips and an added row for each text of a clip except the first text of the clip.

    An added row has one text, and the name and the labels of the clip, but no other modalities. Each text is
    therefore a result, and also a query with the relevant items of its clip. The other modalities of a clip are
    queries and results only once.

    Args:
        clips: n clips with m texts.

    Returns:
        The n clips, then the added rows; the same clips if no clip has several texts.
    """
    texts = clips.texts
    if texts is None:
        return clips
    count, further = len(clips), ~texts.is_first
    rows = torch.from_numpy(np.concatenate([np.arange(count), texts.rows[further]]))
    expanded = replace(clips, texts=None).select(rows)
    clip = torch.arange(len(rows)) < count
    words = torch.cat([clips.matrix("text"), torch.from_numpy(texts.values[further])])
    present = {m: expanded.present.get(m, clip) & clip for m in expanded.modalities if m != "text"}
    if "text" in expanded.present:
        present["text"] = expanded.present["text"] | ~clip
    return replace(expanded, features={**expanded.features, "text": words}, present=present)


def pair_a_text(clips: Clips) -> Clips:
    """Return one row per text, with the other modalities of its clip, followed by the clips without texts.

    Args:
        clips: n clips with m texts.

    Returns:
        The rows; the same clips if no clip has several texts.
    """
    texts = clips.texts
    if texts is None:
        return clips
    without = np.setdiff1d(np.arange(len(clips)), texts.rows)
    expanded = replace(clips, texts=None).select(torch.from_numpy(np.concatenate([texts.rows, without])))
    words = torch.from_numpy(texts.values)
    words = torch.cat([words, words.new_zeros(len(without), words.shape[1])])
    return replace(expanded, features={**expanded.features, "text": words})


def ranked_once(pairs: Clips) -> Clips:
    """Return pairs of a text and its clip with the other modalities only in the first row of each clip.

    Args:
        pairs: n rows of `pair_a_text`.

    Returns:
        The n rows; their queries and results are those of `every_text`.
    """
    if pairs.first_rows is None:
        return pairs
    first = pairs.first_rows == torch.arange(len(pairs))
    others = {m: pairs.present.get(m, first) & first for m in pairs.modalities if m != "text"}
    return replace(pairs, present={**pairs.present, **others})


def of_epoch(clips: Clips, *, seed: int, epoch: int) -> Clips:
    """Draw one row for each distinct name in `drawn_by` of the clips.

    The drawn row depends only on the seed, the epoch, the name and the rows with the name.

    Args:
        clips: n rows; `clips.drawn_by` is the name of each row.
        seed: seed of the run.
        epoch: number of the epoch, counted through all stages.

    Returns:
        The rows, in the order in which names first occur; the same clips if `drawn_by` is None.
    """
    if clips.drawn_by is None:
        return clips
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(clips.drawn_by):
        rows.setdefault(name, []).append(row)
    chosen = []
    for name, numbers in rows.items():
        key = f"{seed} {epoch} {name}".encode(errors="backslashreplace")
        digest = hashlib.blake2b(key, digest_size=8).digest()
        chosen.append(numbers[int.from_bytes(digest, "little") % len(numbers)])
    return clips.select(torch.tensor(chosen))


def with_captions(splits: Splits, trained: WhichTexts) -> Splits:
    """Return captioned sound for training on the captions that `trained` selects.

    Args:
        splits: captioned sound with one row for each pair of a clip and a caption. The label of a row is the number
            of its clip.
        trained: "drawn" sets `drawn_by` of the training rows, for one caption per clip and epoch, and adds a note.
            Any other value returns `splits` unchanged, for training on all pairs.
    """
    train = splits.train
    if trained != "drawn":
        return splits
    note = f"{len(train)} texts of {len(train.labels.unique())} training clips: {_HOW[trained]}"
    train = replace(train, drawn_by=tuple(train.class_names[label] for label in train.labels.tolist()))
    return replace(splits, train=train, notes=(*splits.notes, note))


_HOW = {
    "first": "training uses the first text of each clip (texts=drawn uses one per epoch, texts=all uses all texts)",
    "drawn": "each epoch trains on one text per clip, drawn by the seed",
    "all": "each text forms a pair with its clip",
}


def with_texts(splits: Splits, trained: WhichTexts) -> Splits:
    """Return the splits with one row per text in valid and test, and with the training rows that `trained` selects.

    Args:
        splits: the data.
        trained: "first" for the first text of each clip, "drawn" for one text per clip and epoch, or "all" for a pair
            of each text with its clip.

    Returns:
        The splits with a note on the texts; if no training clip has several texts, only the notes may change.
    """
    train = splits.train
    if train.texts is None:
        unused = () if trained == "first" else (f"texts={trained} changes nothing: no training clip has several texts",)
        return replace(splits, notes=(*splits.notes, *unused))
    fitted = replace(train, texts=None) if trained == "first" else pair_a_text(train)
    if trained == "drawn":
        fitted = replace(fitted, drawn_by=fitted.ids)
    count = f"{len(train.texts.rows)} texts of {len(train)} training clips"
    note = f"{count}: {_HOW[trained]}; in valid and test, all texts are queries and results"
    valid, test = every_text(splits.valid), every_text(splits.test)
    return replace(splits, train=fitted, valid=valid, test=test, notes=(*splits.notes, note))
