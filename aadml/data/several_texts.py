"""Clips with several texts each, laid out as rows: to train on pairs, and to ask and rank every text."""

from dataclasses import replace
from typing import Literal

import numpy as np
import torch

from aadml.comparison.types import Clips, Splits

WhichTexts = Literal["first", "all"]


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


def with_texts(splits: Splits, trained: WhichTexts) -> Splits:
    """Lay the texts of all parts of a data set out; the notes say how.

    Args:
        splits: the data.
        trained: what train is fitted on: the first text of each clip, or a pair for each.
    """
    if splits.train.texts is None:
        return splits
    texts = len(splits.train.texts.rows)
    fitted = pair_a_text(splits.train) if trained == "all" else replace(splits.train, texts=None)
    how = (
        "each is a pair with its clip" if trained == "all" else "the first of each clip is trained on (texts=all: each)"
    )
    note = f"{texts} texts of {len(splits.train)} training clips: {how}; in valid and test all are asked and ranked"
    valid, test = every_text(splits.valid), every_text(splits.test)
    return replace(splits, train=fitted, valid=valid, test=test, notes=(*splits.notes, note))
