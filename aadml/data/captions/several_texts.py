"""Clips with several texts each, laid out as rows: to train on pairs, and to ask and rank every text."""

import hashlib
from dataclasses import replace
from typing import Literal

import numpy as np
import torch

from aadml.comparison.clips import Clips, Splits

WhichTexts = Literal["first", "drawn", "all"]


def every_text(clips: Clips) -> Clips:
    """Give each text beyond the first a row of its own, which has nothing but the text.

    Its row bears name and labels of its clip, so that each text asks for what is relevant to the clip, all texts of a
    clip are ranked, and everything else of it asks and is ranked once.

    Args:
        clips: n of them, with m texts.

    Returns:
        The n clips, and a row for each further text; the same clips where none has several.
    """
    texts = clips.texts
    if texts is None:
        return clips
    count, further = len(clips), ~texts.is_first
    rows = torch.from_numpy(np.concatenate([np.arange(count), texts.rows[further]]))
    laid = replace(clips, texts=None).select(rows)
    clip = torch.arange(len(rows)) < count
    words = torch.cat([clips.matrix("text"), torch.from_numpy(texts.values[further])])
    present = {m: laid.present.get(m, clip) & clip for m in laid.modalities if m != "text"}
    if "text" in laid.present:
        present["text"] = laid.present["text"] | ~clip
    return replace(laid, features={**laid.features, "text": words}, present=present)


def pair_a_text(clips: Clips) -> Clips:
    """Repeat clips for each of their texts; clips without any stand at the end.

    Args:
        clips: n of them, with m texts.

    Returns:
        A row a text; the same clips where none has several.
    """
    texts = clips.texts
    if texts is None:
        return clips
    without = np.setdiff1d(np.arange(len(clips)), texts.rows)
    laid = replace(clips, texts=None).select(torch.from_numpy(np.concatenate([texts.rows, without])))
    words = torch.from_numpy(texts.values)
    words = torch.cat([words, words.new_zeros(len(without), words.shape[1])])
    return replace(laid, features={**laid.features, "text": words})


def of_epoch(clips: Clips, *, seed: int, epoch: int) -> Clips:
    """Draw one of the rows that share a name of `drawn_by`, by seed, epoch and that name alone.

    Args:
        clips: n rows.
        seed: of the training.
        epoch: its number, counted through all stages.

    Returns:
        A row a name, in the order in which names first occur; the same clips where nothing is drawn.
    """
    if clips.drawn_by is None:
        return clips
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(clips.drawn_by):
        rows.setdefault(name, []).append(row)
    return clips.select(torch.tensor([own[_drawn(f"{seed} {epoch} {name}", len(own))] for name, own in rows.items()]))


def _drawn(what: str, count: int) -> int:
    digest = hashlib.blake2b(what.encode(errors="backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % count


def with_captions(splits: Splits, trained: WhichTexts) -> Splits:
    """Let an epoch draw one of the captions of each clip of captioned sound, whose rows are pairs already.

    Args:
        splits: whose labels number the clips.
        trained: "drawn", or anything else for all pairs.
    """
    train = splits.train
    if trained != "drawn":
        return splits
    note = f"{len(train)} texts of {len(train.class_names)} training clips: {_HOW[trained]}"
    train = replace(train, drawn_by=tuple(train.class_names[label] for label in train.labels.tolist()))
    return replace(splits, train=train, notes=(*splits.notes, note))


_HOW = {
    "first": "the first of each clip is trained on (texts=drawn: one of each, anew each epoch, texts=all: each)",
    "drawn": "each epoch takes one of each clip, drawn by the seed",
    "all": "each is a pair with its clip",
}


def with_texts(splits: Splits, trained: WhichTexts) -> Splits:
    """Lay the texts of all parts of a data set out; the notes say how.

    Args:
        splits: the data.
        trained: what train is fitted on: the first text of each clip, one drawn for each epoch, or a pair for each.
    """
    train = splits.train
    if train.texts is None:
        idle = () if trained == "first" else (f"texts={trained} changes nothing: no clip has several texts",)
        return replace(splits, notes=(*splits.notes, *idle))
    fitted = replace(train, texts=None) if trained == "first" else pair_a_text(train)
    if trained == "drawn":
        fitted = replace(fitted, drawn_by=fitted.ids)
    count = f"{len(train.texts.rows)} texts of {len(train)} training clips"
    note = f"{count}: {_HOW[trained]}; in valid and test all are asked and ranked"
    valid, test = every_text(splits.valid), every_text(splits.test)
    return replace(splits, train=fitted, valid=valid, test=test, notes=(*splits.notes, note))
