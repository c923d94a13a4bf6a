"""Exact nearest neighbors by blocks: float32 products select candidates, and float64 cosines rank the candidates.

No matrix of all pairs is stored. A block of queries is multiplied with the bank, or with column blocks of a large bank,
and only the largest product of every group of bank rows is compared. The k best rows lie in the k best groups, so only
those groups are searched.

An error bound of the products decides which scores are computed in float64. If the best products differ by more than
the bound, their order is correct. Only the k neighbors are then scored. Otherwise all candidates are scored by a sum
whose order does not depend on the position of a row. Equal vectors then have equal scores, and ties are broken by
index. A query with more near-ties than spare candidates is searched again with float64 products. If near-ties
remain (coinciding vectors), the whole bank is scored for this query.

Queries and bank may have several views: one matrix each, with the same clips as rows. The score of two clips is then
their least cosine over the views.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from aadml.proxies.exact_sums import (
    DECIMALS,
    LOOPED,
    best_of_all,
    block_of,
    budget_of,
    from_sums,
    least,
    lengths_of_all,
    summed,
)

Views = Sequence[Tensor]
"""Matrices (n, d), one per view, whose rows are the same clips."""

# banks of up to max(NARROW, WIDE + WIDE_BY * dimension) rows are searched without groups, which is faster for them
NARROW, WIDE, WIDE_BY = 2560, 1024, 32
SLACK_ITEMS = 4
SLACK_GROUPS = 1
RANKED = 1 << 14  # maximum number of queries ranked at a time
PRODUCTS = 8  # products of a group in a search without groups of rows
COLUMNS = 2048
MAXIMA, THREADS = 16, 4  # numbers of maxima and threads up to which single maxima are faster than `topk`


@dataclass(frozen=True)
class _Prepared:
    """Vectors of length 1 or 0, with the error bound of their products.

    Attributes:
        queries: (a, d) for each view.
        bank: (m, d) for each view: the n bank rows, then copies of the last row that complete the last group.
        error: (a,) bound on the rounding error of a query's products.
        count: number n of bank rows.
        group: number of rows in a group; 1 for a search without groups.
    """

    queries: Views
    bank: Views
    error: Tensor
    count: int
    group: int


def nearest(
    queries: Views,
    bank: Views,
    *,
    k: int,
    query_codes: Tensor | None = None,
    bank_codes: Tensor | None = None,
    excluded: int = 0,
) -> tuple[Tensor, Tensor]:
    """Find the k bank rows with the largest cosine for every query; ties go to the smaller index.

    Args:
        queries: (a, d) for each view.
        bank: (n, d) for each view.
        k: number of neighbors.
        query_codes: (a,) codes; bank rows with the query's code are excluded.
        bank_codes: (n,) codes of the bank rows.
        excluded: maximum number of bank rows with the same code.

    Returns:
        Indices (a, k) int64, best first, and cosines (a, k) float64. If fewer than k rows remain for a query, the
        missing indices are -1 and the missing cosines are minus infinity.
    """
    queried, count, device = len(queries[0]), len(bank[0]), bank[0].device
    index = torch.full((queried, k), -1, dtype=torch.int64, device=device)
    score = torch.full((queried, k), -torch.inf, dtype=torch.float64, device=device)
    if not queried or not count or not k:
        return index, score
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        search = _Search(queries, bank, min(k + excluded, count))
        for rows in torch.arange(queried, device=device).split(RANKED):
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
    """Search for the `wanted` best bank rows of every query; the vectors are prepared on first use."""

    queries: Views
    bank: Views
    wanted: int

    @cached_property
    def coarse(self) -> _Prepared:
        return self._prepared(torch.float32)

    @cached_property
    def fine(self) -> _Prepared:
        return self._prepared(torch.float64)

    @cached_property
    def lengths(self) -> Views:
        return list(map(lengths_of_all, self.bank))

    @cached_property
    def query_lengths(self) -> Views:
        return self.lengths if self.queries is self.bank else list(map(lengths_of_all, self.queries))

    @property
    def width(self) -> int:
        return max(view.shape[1] for view in self.bank)

    def _prepared(self, dtype: torch.dtype) -> _Prepared:
        count, device = len(self.bank[0]), self.bank[0].device
        bank = [_divided(*pair, dtype) for pair in zip(self.bank, self.lengths, strict=True)]
        queries = bank
        if self.queries is not self.bank:
            queries = [_divided(*pair, dtype) for pair in zip(self.queries, self.query_lengths, strict=True)]
        errors = [
            unit_error(unit.shape[1], dtype, device) * lengths * bank_lengths.max()
            for (unit, lengths), (_, bank_lengths) in zip(queries, bank, strict=True)
        ]
        group = 1
        if count > max(NARROW, WIDE + WIDE_BY * self.width):
            group = group_size(count, self.wanted, self.width)
        padded = [
            torch.cat([unit, unit[-1:].expand(-count % group, -1)]) if count % group else unit for unit, _ in bank
        ]
        error = torch.stack(errors).amax(0) + 10.0**-DECIMALS
        return _Prepared([unit for unit, _ in queries], padded, error.to(dtype), count, group)

    def rows_at_once(self) -> int:
        budget = block_of(self.bank[0].device)
        if self.coarse.group > 1:
            return max(64, budget // COLUMNS)
        # for wide products, more rows at once are worth more than a block that fits the cache
        return max(64, budget // len(self.bank[0]), min(self.width, 1024))

    def candidates(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return bank rows that include the `wanted` nearest bank rows of each query.

        If bank rows are tied, rows with smaller indices are preferred.

        Args:
            rows: (r,) indices of the queries.

        Returns:
            The bank rows (r, s), and a bool mask (r,) of the queries whose first `wanted` bank rows are certainly the
            nearest and in the correct order.
        """
        step = self.rows_at_once()
        parts = [_candidates(self.coarse, part, self.wanted) for part in rows.split(step)]
        candidates, sure, clear = map(torch.cat, zip(*parts, strict=True))
        for unsure in (~sure).nonzero()[:, 0].split(step):
            finer, certain, _ = _candidates(self.fine, rows[unsure], self.wanted)
            if not bool(certain.all()):
                tied = [view[rows[unsure[~certain]]] for view in self.queries]
                finer[~certain] = best_of_all(tied, self.bank, self.lengths, candidates.shape[1])
            candidates[unsure] = finer
        return candidates, clear

    def best_of_ranked(
        self, rows: Tensor, candidates: Tensor, k: int, codes: Tensor | None, bank_codes: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return scores (r, k) and bank rows (r, k) of the k best candidates whose code is not the query's code.

        The candidates (r, s) of a query are ordered, best first. If fewer than k candidates remain, the missing scores
        are minus infinity.
        """
        candidates = candidates[:, : self.wanted]
        left_out = _equal(codes, bank_codes, candidates)
        order = left_out.byte().sort(dim=1, stable=True).indices[:, :k]
        candidates, left_out = candidates.gather(1, order), left_out.gather(1, order)
        return self._scores(rows, candidates).masked_fill_(left_out, -torch.inf), candidates

    def best(
        self, rows: Tensor, candidates: Tensor, k: int, codes: Tensor | None, bank_codes: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the scores (r, k) and bank rows (r, k) of the best candidates, in descending order of score.

        Candidates (r, s) with the code of the query have score minus infinity. If s is below k, the results have
        shape (r, s).
        """
        candidates = candidates.sort(1).values
        exact = self._scores(rows, candidates).masked_fill_(_equal(codes, bank_codes, candidates), -torch.inf)
        score, order = exact.sort(dim=1, descending=True, stable=True)
        return score[:, :k], candidates.gather(1, order[:, :k])

    def _scores(self, rows: Tensor, candidates: Tensor) -> Tensor:
        """Return the scores (r, s) of candidates (r, s) in float64: the least cosine over the views.

        If a view has more than LOOPED dimensions, one candidate per query is scored at a time. A block of products
        then fits in the cache of a core.
        """
        together = candidates.shape[1] if self.width <= LOOPED else 1
        step = max(1, budget_of(self.bank[0]) // self.width // max(together, 2))
        scores = []
        for queries, bank, query_lengths, lengths in zip(
            self.queries, self.bank, self.query_lengths, self.lengths, strict=True
        ):
            parts = zip(rows.split(step), candidates.split(step), strict=True)
            total = torch.cat([_sums(queries, bank, *part, together) for part in parts])
            scores.append(from_sums(total, query_lengths[rows, None], lengths[candidates]))
        return least(scores)


def _sums(queries: Tensor, bank: Tensor, rows: Tensor, candidates: Tensor, together: int) -> Tensor:
    selected, parts = queries.index_select(0, rows).double()[:, None], []
    for some in candidates.split(together, 1):
        parts.append(summed(selected, bank.index_select(0, some.flatten()).unflatten(0, some.shape).double()))
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

        bound = 2^-bits min(d + 3, 8 sqrt(d) + 3)

    The first value of the minimum bounds every product. The second value is exceeded by one product in 10^13
    (Higham and Mary, SIAM J. Sci. Comput. 2019). There are 53 bits for float64 and 24 bits for float32, or 10 bits
    for float32 if a GPU may use TensorFloat-32.

    Reference: Higham and Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 2019, https://doi.org/10.1137/18M1226312
    """
    bits = 53 if dtype == torch.float64 else 24
    if bits == 24 and device.type == "cuda" and torch.get_float32_matmul_precision() != "highest":
        bits = 10
    return float(2.0**-bits * min(dimension + 3.0, 8 * math.sqrt(dimension) + 3))


def group_size(count: int, wanted: int, dimension: int) -> int:
    """Return the power of 2, from 8 to 128, that balances the search over groups and the search within groups.

    The times of the two searches are proportional to count / size and to wanted * size * dimension.
    """
    size = math.sqrt(count / (wanted * max(1.0, dimension / 4)))
    return int(2 ** min(7, max(3, round(math.log2(size)))))


def _equal(codes: Tensor | None, bank_codes: Tensor | None, candidates: Tensor) -> Tensor:
    if codes is None or bank_codes is None:
        return torch.zeros_like(candidates, dtype=torch.bool)
    return codes[:, None] == bank_codes[candidates]


def _candidates(prepared: _Prepared, rows: Tensor, wanted: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the bank rows (r, s) with the largest products of every query, sorted by product.

    Returns:
        The rows, and two (r,) bool: whether the rows certainly contain the `wanted` best rows, and whether the order of
        the `wanted` best rows is certain too.
    """
    queries, error = [view[rows] for view in prepared.queries], prepared.error[rows]
    few = min(wanted + SLACK_ITEMS, prepared.count)
    if prepared.group == 1:
        products = [part @ bank.T for part, bank in zip(queries, prepared.bank, strict=True)]
        value, candidates, outside = _largest(least(products), wanted=wanted, few=few)
    else:
        value, candidates, unopened = _within_groups(prepared, queries, wanted=wanted, few=few)
        outside = torch.maximum(value[:, -1], unopened)
    sure = (outside < value[:, wanted - 1] - 2 * error) | (few == prepared.count)
    apart = value[:, : few - 1] - value[:, 1:few] > 2 * error[:, None]
    return candidates, sure, sure & apart[:, :wanted].all(1)


def _largest(products: Tensor, *, wanted: int, few: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return `few` large products of every row of `products` (r, n), including the `wanted` largest products.

    Column j is in group j mod (n // PRODUCTS). The last n mod PRODUCTS columns are in no group. Only these columns
    and the groups with the largest maxima are sorted. If n // PRODUCTS is below 2 `few`, all columns are sorted.

    Returns:
        The products (r, few) in descending order, their columns (r, few), and a bound (r,) on the products that are
        not returned.
    """
    count = products.shape[1] // PRODUCTS
    if count < 2 * few:
        value, columns = _top(products, few)
        return value, columns, value[:, -1]
    grouped = products[:, : count * PRODUCTS]
    best, chosen = _top(grouped.unflatten(1, (PRODUCTS, count)).amax(1), wanted + SLACK_GROUPS)
    first = torch.arange(PRODUCTS, device=products.device)[:, None] * count
    rest = torch.arange(grouped.shape[1], products.shape[1], device=products.device).expand(len(products), -1)
    columns = torch.cat([(chosen[:, None] + first).flatten(1), rest], 1)
    value, place = _top(products.gather(1, columns), few)
    return value, columns.gather(1, place), torch.maximum(value[:, -1], best[:, -1])


def _within_groups(prepared: _Prepared, queries: Views, *, wanted: int, few: int) -> tuple[Tensor, Tensor, Tensor]:
    """Search the groups of bank rows with the largest products.

    Args:
        prepared: bank in groups.
        queries: (r, d) for each view.
        wanted: number of best rows that the searched groups must contain.
        few: number s of rows to return.

    Returns:
        The best products (r, s), their rows (r, s), and a bound (r,) on the products of the groups that are not
        searched.
    """
    size = prepared.group
    groups = [bank.unflatten(0, (-1, size)) for bank in prepared.bank]  # (groups, size, d)
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
    value, place = products.masked_fill_(rows >= prepared.count, -torch.inf).topk(min(few, rows.shape[1]), 1)
    unopened = best[:, -1] if opened < len(maxima) else torch.full_like(best[:, -1], -torch.inf)
    return value, rows.gather(1, place), unopened


def _top(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest values of every row (r, n), in descending order, and their columns, both (r, count).

    On a CPU with few threads, NumPy's vectorized maxima, one after the other, take a third of the time of `topk`. They
    overwrite the values.
    """
    if values.device.type != "cpu" or count > MAXIMA or torch.get_num_threads() > THREADS:
        return values.topk(count, 1)
    array = np.ascontiguousarray(values.numpy())
    flat, first = array.reshape(-1), np.arange(len(array)) * array.shape[1]
    top, columns = np.empty((count, len(array)), array.dtype), np.empty((count, len(array)), np.int64)
    for place in range(count):
        array.argmax(1, out=columns[place])
        entries = first + columns[place]
        top[place] = flat[entries]
        flat[entries] = -np.inf
    return torch.from_numpy(top).T, torch.from_numpy(columns).T
