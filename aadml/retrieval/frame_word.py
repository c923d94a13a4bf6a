"""Sequences of vectors as rows of numbers, and the frame-by-word relevance of sequences: similarity `frame-word`.

A row begins with four numbers: length % 1024, d, side, and 16 times (length // 1024). The length is the number of
vectors of the sequence. It is stored in two parts, so that both parts are exact in half precision. The dimension of
the vectors is d. The side is 0 for frames and 1 for words. After the four numbers, the row contains the vectors in
order, and then zeros.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.feature_extraction.ground.errors import InputError

FRAME_WORD = "frame-word"
SIDES = ("frames", "words")
BUDGET = 1 << 25
"""Maximum bytes of frame-word products in memory, unless one sequence of words needs more."""

_HEADER = 4
_WHOLE = 1024  # whole numbers up to twice this value are exact in half precision
_THOUSAND = 16  # factor of length // 1024 in the header; rows of an incompatible version have a remainder
_FRAMES = 512  # maximum number of frames of a sequence in one product


def pack(values: Tensor, lengths: Tensor, *, side: str) -> Tensor:
    """Return padded sequences as packed rows.

    Args:
        values: (n, t, d).
        lengths: (n,) number of vectors before the padding.
        side: "frames" or "words".

    Returns:
        (n, 4 + t d) in the type of `values`.
    """
    sequences = [sequence[:length] for sequence, length in zip(values, lengths.tolist(), strict=True)]
    return pack_each(sequences, side=side, steps=values.shape[1])


def pack_each(sequences: list[Tensor], *, side: str, steps: int = 0) -> Tensor:
    """Return sequences as packed rows, and empty the list of sequences to save memory.

    Args:
        sequences: one or more sequences (l, d). The length l may differ between sequences.
        side: see `pack`.
        steps: minimum of t.

    Returns:
        (n, 4 + t d), where t is the larger of `steps` and the length of the longest sequence.
    """
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    dimension = sequences[0].shape[1]
    rows = sequences[0].new_zeros(len(sequences), _HEADER + max(steps, int(lengths.max())) * dimension)
    header = torch.tensor([0.0, dimension, SIDES.index(side), 0.0]).repeat(len(sequences), 1)
    header[:, 0] = (lengths % _WHOLE).float()
    header[:, 3] = _THOUSAND * (lengths // _WHOLE).float()
    rows[:, :_HEADER] = header.to(rows)
    while sequences:
        values = sequences.pop().flatten()
        rows[len(sequences), _HEADER : _HEADER + len(values)] = values
    return rows


def unpack(rows: Tensor) -> tuple[Tensor, Tensor, str]:
    """Return packed rows as values (n, t, d) in the type of the rows, lengths (n,) and side.

    Raises:
        InputError: the rows are not packed sequences.
    """
    header = rows[:, :_HEADER].long()
    thousands = header[:, 3] // _THOUSAND
    header[:, 3] %= _THOUSAND
    dimension, side, form = header[0, 1:].tolist() if len(rows) else (1, 0, 0)
    width = rows.shape[1] - _HEADER
    fits = dimension > 0 and width % max(dimension, 1) == 0 and side in (0, 1) and form == 0
    if not fits or bool((header[:, 1:] != header[:1, 1:]).any()):
        beginning = [round(value, 3) for value in rows[0, :_HEADER].tolist()]
        raise InputError(
            f"frame-word: the vectors are not packed sequences (the first row begins with {beginning}); choose another "
            "similarity"
        )
    values = rows[:, _HEADER:].view(len(rows), -1, dimension)
    return values, header[:, 0] + _WHOLE * thousands, SIDES[side]


@torch.no_grad()
def frame_word_scores(queries: Tensor, gallery: Tensor, *, budget: int = BUDGET) -> Tensor:
    """Compute the relevance (q, n) float32 of n packed gallery items to q packed queries.

    See `aadml.comparison.frame_word` for the formula. Products and sums are computed in float64 and rounded once. A
    score therefore does not depend on the size of blocks. A block compares one sequence of frames with one or more
    sequences of words. The number of sequences of words is limited by the budget.

    Args:
        queries: (q, 4 + t d) packed sequences of frames or of words.
        gallery: (n, 4 + u d) packed sequences of the other side.
        budget: maximum bytes of the products of a block, unless one sequence of words needs more.

    Raises:
        InputError: the inputs are not packed sequences, or are of the same side.
    """
    query, other = _Sequences(*unpack(queries)), _Sequences(*unpack(gallery))
    if query.side == other.side:
        raise InputError(f"frame-word cannot compare {query.side} with {other.side}; pass frames and words")
    if query.side == "frames":
        return _scores(query, other, budget)
    return _scores(other, query, budget).T.contiguous()


@dataclass(frozen=True)
class _Sequences:
    values: Tensor  # (n, t, d)
    lengths: Tensor  # (n,)
    side: str

    def at(self, number: int) -> Tensor:
        """Return the unit-norm vectors (t, d) of one sequence, in float64."""
        return F.normalize(self.values[number, : int(self.lengths[number])].double(), dim=-1, eps=1e-12)


def _scores(frames: _Sequences, words: _Sequences, budget: int) -> Tensor:
    scores = torch.zeros(len(frames.lengths), len(words.lengths))
    longest = min(max(int(frames.lengths.max()), 1), _FRAMES)
    for start, stop in _tiles(words.lengths.tolist(), budget // (8 * longest)):
        lengths = words.lengths[start:stop]
        spoken = torch.cat([words.at(number) for number in range(start, stop)])
        for number in range(len(scores)):
            if int(frames.lengths[number]):
                scores[number, start:stop] = _relevance(frames.at(number), spoken, lengths)
    return scores


def _tiles(lengths: list[int], wide: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds (start, stop) of groups of consecutive sequences.

    The sequences of a group have at most `wide` vectors in total. A sequence with more vectors is a separate group.
    """
    start, total = 0, 0
    for number, length in enumerate(lengths):
        if number > start and total + length > wide:
            yield start, number
            start, total = number, 0
        total += length
    yield start, len(lengths)


def _relevance(frames: Tensor, words: Tensor, lengths: Tensor) -> Tensor:
    """Return scores (c,) of frames (t, d) and c sequences of words, concatenated as (w, d); 0 for an empty sequence."""
    heard = torch.stack([(words @ part.T).relu_().sum(1) for part in frames.split(_FRAMES)]).sum(0) / len(frames)
    owner = torch.repeat_interleave(lengths)
    return heard.new_zeros(len(lengths)).index_add_(0, owner, heard) / lengths.clamp_min(1)
