"""Exact nearest neighbors by blocks: float32 products select candidates, float64 cosines rank them.

No matrix of all pairs is stored. A block of queries is multiplied with the bank in column blocks, and only the largest
product of every group of consecutive bank rows is stored. The k best rows lie in the k best groups, so only those
groups are searched.

An error bound of the products decides what is computed in float64. If the best products differ by more than the bound,
their order is correct, and only the k neighbors are scored. Otherwise all candidates are scored by a sum whose order
does not depend on the position of a row: equal vectors have equal scores, and ties are broken by index. A query with
more near-ties than the slack is searched again with float64 products. If that is not enough (coinciding vectors), the
whole bank is scored for this query.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from aadml.proxies.exact_sums import (
    DECIMALS,
    LOOPED,
    best_of_all,
    block_of,
    budget_of,
    from_sums,
    lengths_of_all,
    summed,
)

# banks of up to max(NARROW, WIDE + WIDE_BY * dimension) rows are searched without groups, which is faster for them
NARROW, WIDE, WIDE_BY = 2560, 1024, 32
SLACK_ITEMS = 8
SLACK_GROUPS = 2
COLUMNS = 2048


@dataclass(frozen=True)
class _Prepared:
    """Vectors of length 1 or 0, with the error bound of their products.

    Attributes:
        queries: (a, d).
        bank: (m, d), n rows, and copies of the last row that complete the last group.
        error: (a,) bound on the rounding error of a query's products.
        count: n.
        group: rows of a group; 1 for a search without groups.
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
    query_codes: Tensor | None = None,
    bank_codes: Tensor | None = None,
    excluded: int = 0,
) -> tuple[Tensor, Tensor]:
    """Find the k bank rows with the largest cosine for every query; ties go to the smaller index.

    Args:
        queries: (a, d).
        bank: (n, d).
        k: number of neighbors.
        query_codes: (a,) codes; bank rows with the query's code are excluded.
        bank_codes: (n,) codes of the bank rows.
        excluded: maximum number of bank rows with the same code.

    Returns:
        Indices (a, k) int64, best first, and cosines (a, k) float64; -1 and minus infinity if fewer rows remain.
    """
    index = torch.full((len(queries), k), -1, dtype=torch.int64, device=bank.device)
    score = torch.full((len(queries), k), -torch.inf, dtype=torch.float64, device=bank.device)
    if not len(queries) or not len(bank) or not k:
        return index, score
    with torch.no_grad(), torch.autocast(bank.device.type, enabled=False):
        search = _Search(queries, bank, min(k + excluded, len(bank)))
        for rows in torch.arange(len(queries), device=bank.device).split(search.rows_at_once()):
            candidates, clear = search.candidates(rows)
            for part, best_of in ((clear, search.best_of_ranked), (~clear, search.best)):
                some = rows[part]
                if len(some):
                    out = None if query_codes is None else query_codes[some], bank_codes
                    best, places = best_of(some, candidates[part], k, *out)
                    score[some, : best.shape[1]] = best
                    index[some, : best.shape[1]] = places.masked_fill(best == -torch.inf, -1)
    return index, score


@dataclass(frozen=True)
class _Search:
    """Search for the best `wanted` rows of every query; products are prepared on first use."""

    queries: Tensor
    bank: Tensor
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
        queries, bank, itself = self.queries, self.bank, self.queries is self.bank
        b, bank_lengths = _divided(bank, self.lengths, dtype)
        q, lengths = (b, bank_lengths) if itself else _divided(queries, self.query_lengths, dtype)
        error = unit_error(q.shape[1], dtype, bank.device) * lengths * bank_lengths.max() + 10.0**-DECIMALS
        is_small = len(b) <= max(NARROW, WIDE + WIDE_BY * b.shape[1])
        group = 1 if is_small else group_size(len(b), self.wanted, b.shape[1])
        b = torch.cat([b, b[-1:].expand(-len(b) % group, -1)]) if len(b) % group else b
        return _Prepared(q, b, error.to(dtype), len(bank), group)

    def rows_at_once(self) -> int:
        budget = block_of(self.bank.device)
        if self.coarse.group > 1:
            return max(64, budget // COLUMNS)
        # for wide products, more rows at once are worth more than a block that fits the cache
        return max(64, budget // len(self.bank), min(self.bank.shape[1], 1024))

    def candidates(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return bank rows (r, s) with the best `wanted` of the queries `rows` (r,) and all ties.

        Returns:
            These rows, and (r,) bool: whether the first `wanted` of them are certainly the best, in order.
        """
        candidates, sure, clear = _candidates(self.coarse, rows, self.wanted)
        if not bool(sure.all()):
            unsure = rows[~sure]
            finer, certain, _ = _candidates(self.fine, unsure, self.wanted)
            if not bool(certain.all()):
                tied = self.queries[unsure[~certain]]
                finer[~certain] = best_of_all(tied, self.bank, self.lengths, candidates.shape[1])
            candidates[~sure] = finer
        return candidates, clear

    def best_of_ranked(
        self, rows: Tensor, candidates: Tensor, k: int, codes: Tensor | None, bank_codes: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Score the first k candidates that are not excluded, for candidates in order: (r, k) each."""
        candidates = candidates[:, : self.wanted]
        left_out = _equal(codes, bank_codes, candidates)
        order = left_out.byte().sort(dim=1, stable=True).indices[:, :k]
        candidates, left_out = candidates.gather(1, order), left_out.gather(1, order)
        return self._scores(rows, candidates).masked_fill_(left_out, -torch.inf), candidates

    def best(
        self, rows: Tensor, candidates: Tensor, k: int, codes: Tensor | None, bank_codes: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Score all candidates and return the best k: (r, k) each; ties go to the smaller index."""
        candidates = candidates.sort(1).values
        exact = self._scores(rows, candidates).masked_fill_(_equal(codes, bank_codes, candidates), -torch.inf)
        score, order = exact.sort(dim=1, descending=True, stable=True)
        return score[:, :k], candidates.gather(1, order[:, :k])

    def _scores(self, rows: Tensor, candidates: Tensor) -> Tensor:
        """Score candidates (r, s) in float64; those of wide vectors one by one, to fit a core's cache."""
        width = self.bank.shape[1]
        together = candidates.shape[1] if width <= LOOPED else 1
        step = max(1, budget_of(self.bank) // width // max(together, 2))
        parts = zip(rows.split(step), candidates.split(step), strict=True)
        total = torch.cat([self._sums(*part, together) for part in parts])
        return from_sums(total, self.query_lengths[rows, None], self.lengths[candidates])

    def _sums(self, rows: Tensor, candidates: Tensor, together: int) -> Tensor:
        queries = self.queries.index_select(0, rows).double()[:, None]
        parts = []
        for some in candidates.split(together, 1):
            bank = self.bank.index_select(0, some.flatten()).unflatten(0, some.shape).double()
            parts.append(summed(queries, bank))
        return torch.cat(parts, 1)


def _divided(vectors: Tensor, lengths: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Divide vectors (m, d) by their lengths (m,), block by block; also return the new lengths, 1 or 0."""
    unit = torch.empty_like(vectors, dtype=dtype)
    step = max(1, budget_of(vectors) // vectors.shape[1])
    divisors = lengths.clamp_min(1e-300)[:, None]
    for first in range(0, len(vectors), step):
        rows = slice(first, first + step)
        unit[rows] = vectors[rows].double() / divisors[rows]
    return unit, (lengths > 0).double()


def unit_error(dimension: int, dtype: torch.dtype, device: torch.device) -> float:
    """Return a bound on the rounding error of a product of two unit vectors.

    The worst case grows with d. The bound with 8 sqrt(d) is exceeded once in 10^13 (Higham and Mary, SIAM J. Sci.
    Comput. 2019). If TensorFloat-32 is allowed, float32 products have 10 bits.
    """
    bits = 53 if dtype == torch.float64 else 24
    if bits == 24 and device.type == "cuda" and torch.get_float32_matmul_precision() != "highest":
        bits = 10
    return float(2.0**-bits * min(dimension + 3.0, 8 * math.sqrt(dimension) + 3))


def group_size(count: int, wanted: int, dimension: int) -> int:
    """Return the group size that balances the search of groups (count / size) and in groups (wanted size dimension)."""
    size = math.sqrt(count / (wanted * max(1.0, dimension / 4)))
    return int(2 ** min(7, max(3, round(math.log2(size)))))


def _equal(codes: Tensor | None, bank_codes: Tensor | None, candidates: Tensor) -> Tensor:
    if codes is None or bank_codes is None:
        return torch.zeros_like(candidates, dtype=torch.bool)
    return codes[:, None] == bank_codes[candidates]


def _candidates(prepared: _Prepared, rows: Tensor, wanted: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return bank rows (r, s) with the best `wanted` of every query, sorted by product.

    Returns:
        These rows, and two (r,) bool: whether they certainly contain the best, and whether their order is certain.
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
    """Search the groups of the best products; with several views, the minimum of their products counts.

    Args:
        banks: (m, e) for each view, a multiple of `size` rows.
        queries: (r, e) for each view.
        size: rows of a group.
        count: number of bank rows without the padding of the last group.
        wanted: number of best rows that the searched groups must contain.
        few: number s of rows to return.

    Returns:
        The best products (r, s), their rows (r, s), and a bound on the products of all other groups (r,).
    """
    groups = [bank.unflatten(0, (-1, size)) for bank in banks]  # (groups, size, e)
    maxima = queries[0].new_empty(len(groups[0]), len(queries[0]))
    step = max(1, COLUMNS // size)
    for first in range(0, len(maxima), step):
        span = slice(first, first + step)
        products = least([bank[span].flatten(0, 1) @ part.T for bank, part in zip(groups, queries, strict=True)])
        torch.amax(products.unflatten(0, (-1, size)), 1, out=maxima[span])
    opened = min(wanted + SLACK_GROUPS, len(maxima))
    best, chosen = maxima.T.topk(opened, 1)
    rows = (chosen[:, :, None] * size + torch.arange(size, device=maxima.device)).flatten(1)
    pairs = zip(groups, queries, strict=True)
    products = least([torch.bmm(bank[chosen].flatten(1, 2), part[:, :, None])[:, :, 0] for bank, part in pairs])
    value, place = products.masked_fill_(rows >= count, -torch.inf).topk(min(few, rows.shape[1]), 1)
    unopened = best[:, -1] if opened < len(maxima) else torch.full_like(best[:, -1], -torch.inf)
    return value, rows.gather(1, place), unopened


def least(scores: Sequence[Tensor]) -> Tensor:
    """Return the elementwise minimum of scores; the first tensor is overwritten."""
    for other in scores[1:]:
        torch.minimum(scores[0], other, out=scores[0])
    return scores[0]
