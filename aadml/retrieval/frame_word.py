"""Sequences as rows of numbers, and their relevance frame by word: the similarity `frame-word`.

A row holds [length % 1024, d, side, form + 16 (length // 1024), values...]: the sequence's own length in two parts, so
that it is exact in half precision too, the dimension of its vectors, whether they are frames (0) or words (1), the
number of the relevance's form, and the vectors one after the other, then zeros.
"""

from typing import get_args

import torch
from torch import Tensor

from aadml.comparison.relevance import Form, relevance
from feature_extraction.ground.errors import InputError

FRAME_WORD = "frame-word"
FORMS: tuple[str, ...] = get_args(Form)
SIDES = ("frames", "words")
_HEADER = 4
_WHOLE = 1024  # whole numbers up to twice this are exact in half precision
_FORMS = 16  # room for forms below the thousands of the length


def pack(values: Tensor, lengths: Tensor, *, side: str, form: str = "mean") -> Tensor:
    """Write sequences as rows.

    Args:
        values: (n, t, d).
        lengths: (n,) how many of the t are real.
        side: "frames" or "words".
        form: of the relevance, see `aadml.comparison.relevance`.

    Returns:
        (n, 4 + t d) of the type of `values`.
    """
    count, steps, dimension = values.shape
    header = torch.tensor([0.0, dimension, SIDES.index(side), FORMS.index(form)]).repeat(count, 1)
    header[:, 0] = (lengths.cpu() % _WHOLE).float()
    header[:, 3] += _FORMS * (lengths.cpu() // _WHOLE).float()
    kept = torch.arange(steps, device=values.device)[None, :, None] < lengths.to(values.device)[:, None, None]
    return torch.cat([header.to(values), (values * kept).flatten(1)], 1)


def unpack(rows: Tensor) -> tuple[Tensor, Tensor, str, str]:
    """Read rows back: values (n, t, d) in float32, lengths (n,), side, form.

    Raises:
        InputError: the rows are not packed sequences.
    """
    header = rows[:, :_HEADER].long()
    thousands = header[:, 3] // _FORMS
    header[:, 3] %= _FORMS
    dimension, side, form = header[0, 1:].tolist() if len(rows) else (1, 0, 0)
    whole = rows.shape[1] - _HEADER
    fits = dimension > 0 and whole % max(dimension, 1) == 0 and side in (0, 1) and form in range(len(FORMS))
    if not fits or bool((header[:, 1:] != header[:1, 1:]).any()):
        raise InputError("frame-word: the rows are not sequences written by a method of this similarity")
    values = rows[:, _HEADER:].float().view(len(rows), -1, dimension)
    return values, header[:, 0] + _WHOLE * thousands, SIDES[side], FORMS[form]


@torch.no_grad()
def frame_word_scores(queries: Tensor, gallery: Tensor) -> Tensor:
    """Score packed queries (q, ...) against packed gallery items (n, ...): their relevance (q, n) float32."""
    query_values, query_lengths, query_side, form = unpack(queries)
    values, lengths, side, other = unpack(gallery)
    if form != other or query_side == side:
        raise InputError(f"frame-word: cannot compare {query_side} ({form}) with {side} ({other})")
    if query_side == "frames":
        return relevance(query_values, query_lengths, values, lengths, form=form)
    return relevance(values, lengths, query_values, query_lengths, form=form).T.contiguous()
