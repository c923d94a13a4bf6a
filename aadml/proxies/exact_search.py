"""Exact nearest neighbors by blocks: float32 products find the few that can matter, float64 decides among them.

No matrix of all pairs is ever held. A block of queries is multiplied with the bank in column blocks, and only the
largest product of every group of consecutive bank rows is kept: the k best rows lie in the k best groups, so these
alone are looked into. What rounding could have hidden is known by an error bound: where the best products lie further
apart than that, their order is right, and only the k neighbors are scored in float64. Elsewhere all candidates are,
by a sum whose order does not depend on where a row stands; equal vectors get equal scores, and ties are decided by
index. A query with more near-ties than the slack holds is searched again with products in float64, and if that is not
enough (vectors that coincide) scored whole by those sums.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from aadml.feature_extraction.ground.registry import lookup
from aadml.proxies.exact_sums import (
    DECIMALS,
    LOOPED,
    SIMILARITIES,
    best_of_all,
    block_of,
    budget_of,
    from_sums,
    lengths_of_all,
    summed,
)

# a bank of up to NARROW rows, or WIDE and WIDE_BY more a dimension, is looked through whole: opening groups costs more
NARROW, WIDE, WIDE_BY = 2560, 1024, 32
SLACK_ITEMS = 8
SLACK_GROUPS = 2
COLUMNS = 2048


@dataclass(frozen=True)
class _Prepared:
    """Vectors whose products rank as the similarity does, and how far such a product may be off.

    Attributes:
        queries: (a, e).
        bank: (m, e), n rows and copies of the last one up to whole groups.
        error: (a,) bound of the rounding error of a query's products.
        count: n.
        group: rows in a group; 1 where the bank is looked through whole.
    """

    queries: Tensor
    bank: Tensor
    error: Tensor
    count: int
    group: int


def nearest(
    queries: Tensor,
    bank: Tensor,
    *,
    k: int,
    similarity: str = "cosine",
    query_codes: Tensor | None = None,
    bank_codes: Tensor | None = None,
    excluded: int = 0,
) -> tuple[Tensor, Tensor]:
    """Find the k most similar bank rows of every query; of equally similar ones the smaller index comes first.

    Args:
        queries: (a, d).
        bank: (n, d).
        k: how many.
        similarity: a key of SIMILARITIES.
        query_codes: (a,) bank rows of the query's own code are left out.
        bank_codes: (n,) likewise.
        excluded: at most how many bank rows share one code.

    Returns:
        Indices (a, k) int64, best first, and similarities (a, k) float64; -1 and minus infinity where fewer remain.
    """
    lookup(SIMILARITIES, similarity, "similarity")
    index = torch.full((len(queries), k), -1, dtype=torch.int64, device=bank.device)
    score = torch.full((len(queries), k), -torch.inf, dtype=torch.float64, device=bank.device)
    if not len(queries) or not len(bank) or not k:
        return index, score
    with torch.no_grad(), torch.autocast(bank.device.type, enabled=False):
        search = _Search(queries, bank, similarity, min(k + excluded, len(bank)))
        for rows in torch.arange(len(queries), device=bank.device).split(search.rows_at_once()):
            candidates, clear = search.candidates(rows)
            for part, best_of in ((clear, search.best_of_ranked), (~clear, search.best)):
                some = rows[part]
                if len(some):
                    out = None if query_codes is None else query_codes[some], bank_codes
                    best, found = best_of(some, candidates[part], k, *out)
                    score[some, : best.shape[1]] = best
                    index[some, : best.shape[1]] = found.masked_fill(best == -torch.inf, -1)
    return index, score


@dataclass(frozen=True)
class _Search:
    """One search for the best `wanted` rows of every query; finer steps are prepared when first needed."""

    queries: Tensor
    bank: Tensor
    similarity: str
    wanted: int

    @cached_property
    def coarse(self) -> _Prepared:
        return self._prepared(torch.float32)

    @cached_property
    def fine(self) -> _Prepared:
        return self._prepared(torch.float64)

    @cached_property
    def lengths(self) -> Tensor:
        return lengths_of_all(self.bank)

    @cached_property
    def query_lengths(self) -> Tensor:
        return self.lengths if self.queries is self.bank else lengths_of_all(self.queries)

    def _prepared(self, dtype: torch.dtype) -> _Prepared:
        """Map queries and bank; vectors whose angles count are divided by lengths that are known already."""
        known = (self.query_lengths, self.lengths) if self.similarity == "cosine" else None
        return _prepared(self.queries, self.bank, self.similarity, self.wanted, dtype, known)

    def rows_at_once(self) -> int:
        budget = block_of(self.bank.device)
        whole = max(
            budget // len(self.bank), min(self.bank.shape[1], 1024)
        )  # wide products take longer than the cache saves
        return max(64, whole if self.coarse.group == 1 else budget // COLUMNS)

    def candidates(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Give a few bank rows that hold the best `wanted` of the queries `rows` (r,), and all ties: (r, s).

        Returns:
            Also (r,) whether the first `wanted` of them are the best, best first, beyond doubt.
        """
        found, sure, clear = _candidates(self.coarse, rows, self.wanted)
        if not bool(sure.all()):
            unsure = rows[~sure]
            finer, certain, _ = _candidates(self.fine, unsure, self.wanted)
            if not bool(certain.all()):
                tied = self.queries[unsure[~certain]]
                finer[~certain] = best_of_all(tied, self.bank, self.lengths, self.similarity, found.shape[1])
            found[~sure] = finer
        return found, clear

    def best_of_ranked(
        self, rows: Tensor, candidates: Tensor, k: int, codes: Tensor | None, bank_codes: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Score the first k candidates that are not left out, where the order of candidates is known: (r, k) each."""
        candidates = candidates[:, : self.wanted]
        left_out = _equal(codes, bank_codes, candidates)
        order = left_out.byte().sort(dim=1, stable=True).indices[:, :k]
        candidates, left_out = candidates.gather(1, order), left_out.gather(1, order)
        return self._scores(rows, candidates).masked_fill_(left_out, -torch.inf), candidates

    def best(
        self, rows: Tensor, candidates: Tensor, k: int, codes: Tensor | None, bank_codes: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Score all candidates and give the best k: (r, k) each; of equal ones the smaller index comes first."""
        candidates = candidates.sort(1).values
        exact = self._scores(rows, candidates).masked_fill_(_equal(codes, bank_codes, candidates), -torch.inf)
        score, order = exact.sort(dim=1, descending=True, stable=True)
        return score[:, :k], candidates.gather(1, order[:, :k])

    def _scores(self, rows: Tensor, candidates: Tensor) -> Tensor:
        """Score candidates (r, s) in float64; those of wide vectors one after another, to stay in a core's cache."""
        width = self.bank.shape[1]
        together = candidates.shape[1] if width <= LOOPED else 1
        step = max(1, budget_of(self.bank) // width // max(together, 2))
        parts = zip(rows.split(step), candidates.split(step), strict=True)
        total = torch.cat([self._sums(*part, together) for part in parts])
        return from_sums(total, self.query_lengths[rows, None], self.lengths[candidates], self.similarity)

    def _sums(self, rows: Tensor, candidates: Tensor, together: int) -> Tensor:
        queries = self.queries.index_select(0, rows).double()[:, None]
        parts = []
        for some in candidates.split(together, 1):
            bank = self.bank.index_select(0, some.flatten()).unflatten(0, some.shape).double()
            parts.append(summed(queries, bank, differences=self.similarity == "euclidean"))
        return torch.cat(parts, 1)


def _prepared(
    queries: Tensor,
    bank: Tensor,
    similarity: str,
    wanted: int,
    dtype: torch.dtype,
    known: tuple[Tensor, Tensor] | None,
) -> _Prepared:
    center = bank.double().mean(0) if similarity == "euclidean" else None
    if known is not None:
        b, bank_lengths = _divided(bank, known[1], dtype)
        q, lengths = (b, bank_lengths) if queries is bank else _divided(queries, known[0], dtype)
    else:
        b, bank_lengths = _mapped(bank, dtype, center)
        same = queries is bank and center is None
        q, lengths = (b, bank_lengths) if same else _mapped(queries, dtype, center, asking=True)
    longest = bank_lengths.max()
    error = unit_error(q.shape[1], dtype, bank.device) * lengths * longest
    # the sums that decide are themselves rounded
    sums = unit_error(q.shape[1], torch.float64, bank.device) * (lengths + longest).square()
    error = error + (sums if similarity != "cosine" else 10.0**-DECIMALS)
    whole = len(b) <= max(NARROW, WIDE + WIDE_BY * b.shape[1])
    group = 1 if whole else group_size(len(b), wanted, b.shape[1])
    b = torch.cat([b, b[-1:].expand(-len(b) % group, -1)]) if len(b) % group else b
    return _Prepared(q, b, error.to(dtype), len(bank), group)


def _divided(vectors: Tensor, lengths: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Divide vectors (m, d) by their lengths (m,), a few at a time, and give what lengths they have then: 1 or 0."""
    unit = torch.empty_like(vectors, dtype=dtype)
    step = max(1, budget_of(vectors) // vectors.shape[1])
    whole = lengths.clamp_min(1e-300)[:, None]
    for first in range(0, len(vectors), step):
        rows = slice(first, first + step)
        unit[rows] = vectors[rows].double() / whole[rows]
    return unit, (lengths > 0).double()


def _mapped(
    vectors: Tensor, dtype: torch.dtype, center: Tensor | None, *, asking: bool = False
) -> tuple[Tensor, Tensor]:
    """Turn vectors (m, d) into those whose products rank as the similarity does, a few at a time: (m, e), lengths (m,).

    Where there is a center the similarity is Euclidean: -|q - b|^2 ranks as q.b - |b|^2 / 2, and the closer to the
    origin vectors are, the smaller is the rounding.
    """
    mapped = vectors.new_empty(len(vectors), vectors.shape[1] + (center is not None), dtype=dtype)
    lengths = vectors.new_empty(len(vectors), dtype=torch.float64)
    step = max(1, budget_of(vectors) // vectors.shape[1])
    for first in range(0, len(vectors), step):
        rows = vectors[first : first + step].double()
        if center is not None:
            rows = rows - center
            last = torch.ones_like(rows[:, :1]) if asking else rows.square().sum(1, keepdim=True) / -2
            rows = torch.cat([rows, last], 1)
        mapped[first : first + step] = rows
        lengths[first : first + step] = rows.norm(dim=1)
    return mapped, lengths


def unit_error(dimension: int, dtype: torch.dtype, device: torch.device) -> float:
    """Bound the error of a product of two unit vectors.

    The worst case grows with d; eight times the square root of d holds for all but one in 10^13 (Higham and Mary,
    SIAM J. Sci. Comput. 2019). Where TensorFloat-32 is allowed products of float32 carry 10 bits only.
    """
    bits = 53 if dtype == torch.float64 else 24
    if bits == 24 and device.type == "cuda" and torch.get_float32_matmul_precision() != "highest":
        bits = 10
    return float(2.0**-bits * min(dimension + 3.0, 8 * math.sqrt(dimension) + 3))


def group_size(count: int, wanted: int, dimension: int) -> int:
    """Balance the search among groups (count / size) against the search within (wanted * size * dimension)."""
    size = math.sqrt(count / (wanted * max(1.0, dimension / 4)))
    return int(2 ** min(7, max(3, round(math.log2(size)))))


def _equal(codes: Tensor | None, bank_codes: Tensor | None, candidates: Tensor) -> Tensor:
    """Say which candidates (r, s) share the code of their query (r,)."""
    if codes is None or bank_codes is None:
        return torch.zeros_like(candidates, dtype=torch.bool)
    return codes[:, None] == bank_codes[candidates]


def _candidates(prepared: _Prepared, rows: Tensor, wanted: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pick a few bank rows that hold the best `wanted` of every query: (r, s), best first by their products.

    Returns:
        Also (r,) whether they surely hold them, and (r,) whether the order of the first `wanted` is sure too.
    """
    queries, error = prepared.queries[rows], prepared.error[rows]
    few = min(wanted + SLACK_ITEMS, prepared.count)
    if prepared.group == 1:
        value, candidates = (queries @ prepared.bank.T).topk(few, 1)
        outside = value[:, -1]
    else:
        value, candidates, unopened = within_groups(
            [prepared.bank], [queries], size=prepared.group, count=prepared.count, wanted=wanted, few=few
        )
        outside = torch.maximum(value[:, -1], unopened)
    sure = (outside < value[:, wanted - 1] - 2 * error) | (few == prepared.count)
    apart = value[:, : few - 1] - value[:, 1:few] > 2 * error[:, None]
    return candidates, sure, sure & apart[:, :wanted].all(1)


def within_groups(
    banks: Sequence[Tensor], queries: Sequence[Tensor], *, size: int, count: int, wanted: int, few: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Open the groups of the best products; of several views the least product of all counts.

    Args:
        banks: of each view (m, e), whole groups of rows.
        queries: of each view (r, e).
        size: rows of a group.
        count: rows of a bank that count; those behind fill the last group up.
        wanted: how many best rows must lie in the opened groups.
        few: how many are given.

    Returns:
        The best products (r, s), their rows (r, s), and the best of the groups that stayed closed (r,).
    """
    groups = [bank.unflatten(0, (-1, size)) for bank in banks]  # (groups, size, e)
    maxima = queries[0].new_empty(len(groups[0]), len(queries[0]))
    for part in torch.arange(len(maxima)).split(max(1, COLUMNS // size)):
        span = slice(int(part[0]), int(part[-1]) + 1)
        products = least([own[span].flatten(0, 1) @ asked.T for own, asked in zip(groups, queries, strict=True)])
        torch.amax(products.unflatten(0, (len(part), -1)), 1, out=maxima[span])
    opened = min(wanted + SLACK_GROUPS, len(maxima))
    best, chosen = maxima.T.topk(opened, 1)
    rows = (chosen[:, :, None] * size + torch.arange(size, device=maxima.device)).flatten(1)
    pairs = zip(groups, queries, strict=True)
    products = least([torch.bmm(own[chosen].flatten(1, 2), asked[:, :, None])[:, :, 0] for own, asked in pairs])
    value, place = products.masked_fill_(rows >= count, -torch.inf).topk(min(few, rows.shape[1]), 1)
    unopened = best[:, -1] if opened < len(maxima) else torch.full_like(best[:, -1], -torch.inf)
    return value, rows.gather(1, place), unopened


def least(scores: Sequence[Tensor]) -> Tensor:
    """Give the least of several scores, entry by entry; the first is overwritten where there are more."""
    for other in scores[1:]:
        torch.minimum(scores[0], other, out=scores[0])
    return scores[0]
