"""Results of an evaluation, for tables, JSON and tests of significance."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.features import Direction
from aadml.comparison.relevance import LABEL
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.figures import draw_curves, panels
from aadml.feature_extraction.ground.import_paths import optional
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.retrieval.first_ranks import FirstRanks
from aadml.retrieval.metric_names import CHANCE_OF, Gallery, names_at
from aadml.retrieval.record import DirectionRecord, EvaluationRecord, Figures, PerQuery, PerUnit, ScopeCurve
from aadml.retrieval.sampling import QuerySample
from aadml.retrieval.scores import Indices
from aadml.retrieval.significance import mean_interval
from aadml.retrieval.ties import Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCOPE = tuple(range(10, 1001, 10))
"""K of the scope curve; values above the size of the gallery are omitted."""
SCOPE_METRICS = ("precision", "recall", "hit_rate")


@dataclass(frozen=True)
class Curves:
    """Means over the queries at increasing cutoffs K, each (c,).

    Attributes:
        cutoffs: K.
        precision: relevant items among the first K, divided by K.
        recall: relevant items among the first K, divided by all relevant items.
        hit_rate: share of queries with a relevant item among the first K.
    """

    cutoffs: Indices
    precision: Values
    recall: Values
    hit_rate: Values

    def at(self, cutoffs: tuple[int, ...]) -> "Curves":
        """Return the curves at some of their cutoffs."""
        index = np.searchsorted(self.cutoffs, cutoffs)
        return Curves(self.cutoffs[index], self.precision[index], self.recall[index], self.hit_rate[index])

    @property
    def scope(self) -> "Curves":
        """Scope curve: K = 10, 20, ... 1000, up to the size of the gallery."""
        return self.at(tuple(np.intersect1d(self.cutoffs, SCOPE).tolist()))


@dataclass(frozen=True)
class ClassRow:
    """One class of queries: name, number of queries, MAP and chance level."""

    name: str
    queries: int
    map: float
    chance: float


@dataclass(frozen=True, repr=False)
class DirectionResult:
    """Result of one direction. With ties, every metric is its expectation over all orders of the tied items.

    Attributes:
        direction: (queries, gallery).
        ids: names of the q scored queries.
        units: names of the m units of the 95 % interval of MAP: clips, or clusters of clips.
        unit: (q,) number of the unit of each query.
        by_item: (m,) derivative of the sum of the queries' AP with respect to the weight of each unit in the gallery.
        groups: (q,) class of each query; None if relevance is not by class.
        names: class in `groups` -> name.
        gallery: n, the number of ranked items.
        without_relevant: number of queries skipped because the gallery has no item relevant to them.
        average_precision: (q,) AP of each query.
        bounds: (2, q) AP of the worst and the best order of tied items.
        chance: (q,) expected AP of a random order.
        first: ranks of the best relevant items.
        first_by_chance: ranks of the best relevant items in a random order.
        tie_rate: share of ranked items that share their score with another item of the same ranking.
        curves: curves of precision@K, recall@K and hit rate@K.
        cutoffs: K of the tables.
        figures: keys in the JSON -> value, for all other metrics.
    """

    direction: Direction
    ids: tuple[str, ...]
    units: tuple[str, ...]
    unit: Indices
    by_item: Values
    groups: NDArray[Any] | None
    names: Mapping[int, str]
    gallery: int
    without_relevant: int
    average_precision: Values
    bounds: Values
    chance: Values
    first: FirstRanks
    first_by_chance: FirstRanks
    tie_rate: float
    curves: Curves
    cutoffs: tuple[int, ...]
    figures: Figures = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"DirectionResult({self.name}: MAP {self.map:.4f}, {len(self.ids)} queries against {self.gallery})"

    @property
    def name(self) -> str:
        """Direction as one name, such as "audio-visual"."""
        return "-".join(self.direction)

    @property
    def map(self) -> float:
        """Mean average precision."""
        return float(self.average_precision.mean())

    @property
    def rank(self) -> Values:
        """Expected rank (q,) of the best relevant item, from 1."""
        return self.first.expected

    @property
    def map_bounds(self) -> tuple[float, float]:
        """MAP of the worst and the best order of tied items."""
        low, high = self.bounds.mean(axis=1)
        return float(low), float(high)

    @cached_property
    def unit_values(self) -> Values:
        """Pseudo-values (m,) of MAP, one per unit: MAP plus m times the centered influence of the unit.

        The influence of a unit is the sum of the influences of its clips, as queries and as items of the gallery.
        """
        as_query = np.bincount(self.unit, weights=self.average_precision - self.map, minlength=len(self.units))
        influence = (as_query + self.by_item) / len(self.unit)
        values: Values = self.map + len(self.units) * (influence - influence.mean())
        return values

    @property
    def map_interval(self) -> tuple[float, float]:
        """95 % interval of MAP over test sets, from the pseudo-values of the units."""
        return mean_interval(self.unit_values)

    @cached_property
    def by_class(self) -> tuple[ClassRow, ...]:
        """Number of queries, MAP and chance level of each class of queries; empty if relevance is not by class."""
        rows: list[ClassRow] = []
        for group in () if self.groups is None else np.unique(self.groups):
            members = self.groups == group
            name = self.names.get(int(group), str(group))
            values = float(self.average_precision[members].mean()), float(self.chance[members].mean())
            rows.append(ClassRow(name, int(members.sum()), *values))
        return tuple(rows)

    def record(self, *, queries: bool = False) -> DirectionRecord:
        """Return every metric by name; with `queries`, also the AP of each query."""
        table, scope = self.curves.at(self.cutoffs), self.curves.scope
        at: Figures = {
            (f"{name}_at", str(k)): value
            for name in SCOPE_METRICS
            for k, value in zip(self.cutoffs, getattr(table, name).tolist(), strict=True)
        }
        chance = {(CHANCE_OF, *path): value for path, value in _ranks(self.first_by_chance).items()}
        return DirectionRecord(
            map=self.map,
            map_bounds=list(self.map_bounds),
            map_interval=list(self.map_interval),
            chance=float(self.chance.mean()),
            tie_rate=self.tie_rate,
            queries=len(self.ids),
            queries_without_relevant=self.without_relevant,
            gallery=self.gallery,
            scope=ScopeCurve(scope.cutoffs.tolist(), *(getattr(scope, name).tolist() for name in SCOPE_METRICS)),
            by_class={
                row.name: {"queries": row.queries, "map": row.map, "chance": row.chance} for row in self.by_class
            },
            per_query=PerQuery(list(self.ids), self.average_precision.tolist()) if queries else None,
            figures={**at, **_ranks(self.first), **chance, **self.figures},
        )


def both_ways(first: DirectionResult, second: DirectionResult) -> DirectionResult:
    """Return the joint result of two disjoint halves of the clips, each the gallery of the other.

    Unless queries are sampled, every clip with the query modality is a query once. Clips may lack a modality, so the
    galleries may differ in size. The `gallery` of the result is the smaller size.
    """
    parts, items = (first, second), min(first.gallery, second.gallery)
    weights = np.array([len(part.ids) for part in parts]) / (len(first.ids) + len(second.ids))
    cutoffs = tuple(k for k in first.cutoffs if k in second.cutoffs)
    curves = [part.curves.at(tuple(k for k in first.curves.cutoffs if k in second.curves.cutoffs)) for part in parts]

    def mean(values: Iterable[Any]) -> Any:
        return sum(weight * value for weight, value in zip(weights, values, strict=True))

    figures = [path for path in first.figures if path in second.figures]
    return replace(
        first,
        ids=first.ids + second.ids,
        unit=np.concatenate([first.unit, second.unit]),
        by_item=first.by_item + second.by_item,
        groups=None if first.groups is None or second.groups is None else np.concatenate([first.groups, second.groups]),
        gallery=items,
        without_relevant=first.without_relevant + second.without_relevant,
        average_precision=np.concatenate([part.average_precision for part in parts]),
        bounds=np.concatenate([part.bounds for part in parts], axis=1),
        chance=np.concatenate([part.chance for part in parts]),
        first=FirstRanks.joined([part.first for part in parts]),
        first_by_chance=FirstRanks.joined([part.first_by_chance for part in parts]),
        tie_rate=float(mean(part.tie_rate for part in parts)),
        curves=Curves(
            curves[0].cutoffs,
            *(mean(getattr(curve, name) for curve in curves) for name in SCOPE_METRICS),
        ),
        cutoffs=cutoffs,
        figures={path: float(mean(part.figures[path] for part in parts)) for path in figures},
    )


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Scores of a set of embeddings, printed as a short table.

        >>> scores = aadml.evaluate("runs/...")
        >>> scores.map, scores["recall@10"], scores["audio-visual"].map

    Attributes:
        protocol: name of the protocol that made the embeddings.
        split: name of the scored split.
        similarity: similarity of two vectors.
        directions: one result per direction.
        label_space: modality -> (accuracy, log-loss) of vectors with one dimension per class.
        gallery: gallery of each query: "full", "without-partner" or "disjoint".
        relevance: rule of relevance: "label", "own", "labels", "labels-graded" or "file".
        sample: sample of the queries; None if all clips were queries.
        clustered: whether the units of the intervals are clusters of clips instead of clips.
        requested: names of the requested metrics, which the short table shows.
    """

    protocol: str
    split: str
    similarity: str
    directions: tuple[DirectionResult, ...]
    label_space: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    gallery: Gallery = "full"
    relevance: str = LABEL.name
    sample: QuerySample | None = None
    clustered: bool = False
    requested: tuple[str, ...] = ()

    @overload
    def __getitem__(self, name: Literal["map"]) -> float: ...

    @overload
    def __getitem__(self, name: str) -> Any: ...

    def __getitem__(self, name: str) -> Any:
        """Return the result of a direction such as "audio-visual", or the value of a metric such as "recall@10".

        The value of a metric is the mean over all directions.

        Raises:
            KeyError: the metric was not computed.
            InputError: the text after an @ is not a cutoff.
        """
        if name in (results := {result.name: result for result in self.directions}):
            return results[name]
        if (value := (record := self.record()).figure(name)) is None:
            raise KeyError(
                f"{name:.80} was not computed; choose a direction ({', '.join(results)}) or a computed metric "
                f"({', '.join(names_at(record.places))}); aadml.evaluate computes others with metrics=[...]"
            )
        return value

    def __repr__(self) -> str:
        return self.table()

    def table(self, *, everything: bool = False, by_class: bool = False) -> str:
        """Return the table that `aadml evaluate` prints.

        Args:
            everything: whether to show all metrics with their chance levels (`--all`).
            by_class: whether to add the MAP of each class of queries (`--by-class`).
        """
        from aadml.retrieval.summary import class_table, summary

        classes = [class_table(result) for result in self.directions] if by_class else []
        return "\n\n".join([summary(self, everything=everything), *classes])

    @property
    def map_mean(self) -> float:
        """Mean of the MAP of all directions."""
        return float(np.mean([result.map for result in self.directions]))

    map = map_mean
    """Mean of the MAP of all directions."""

    @property
    def unit_values(self) -> Values:
        """Pseudo-value (m,) of the mean MAP for each unit; see `DirectionResult.unit_values`."""
        values: Values = np.mean([result.unit_values for result in self.directions], axis=0)
        return values

    @property
    def map_interval(self) -> tuple[float, float]:
        """95 % interval of `map_mean` over test sets, from the pseudo-values of the units."""
        return mean_interval(self.unit_values)

    def per_unit(self) -> PerUnit:
        """Return the pseudo-values of the mean MAP with the names of the units."""
        return PerUnit(list(self.directions[0].units), self.unit_values.tolist())

    @property
    def chance(self) -> float:
        """Mean chance level of MAP of all directions."""
        return float(np.mean([result.chance.mean() for result in self.directions]))

    @property
    def tie_rate(self) -> float:
        """Mean tie rate of all directions."""
        return float(np.mean([result.tie_rate for result in self.directions]))

    def record(self, *, queries: bool = False) -> EvaluationRecord:
        """Return the content of `evaluation.json`, without the facts about the run.

        Args:
            queries: whether to add the AP of each query and all pseudo-values.
        """
        return EvaluationRecord(
            protocol=self.protocol,
            split=self.split,
            similarity=self.similarity,
            gallery=self.gallery,
            relevance=self.relevance,
            sample=self.sample,
            chance=self.chance,
            tie_rate=self.tie_rate,
            map_mean=self.map_mean,
            map_mean_interval=list(self.map_interval),
            per_unit=self.per_unit() if queries else None,
            directions={result.name: result.record(queries=queries) for result in self.directions},
            label_space={
                modality: {"accuracy": accuracy, "log_loss": loss}
                for modality, (accuracy, loss) in self.label_space.items()
            },
        )

    def to_json(self, *, queries: bool = False) -> JsonObject:
        """Return every metric by name, ready for `json.dumps`.

        Args:
            queries: whether to add the AP of each query and the pseudo-value of each unit.
        """
        return self.record(queries=queries).to_json()

    to_dict = to_json
    """Every metric by name, as printed by `aadml evaluate --json`."""

    def plot_scope(self, metric: Literal["precision", "recall", "hit_rate"] = "precision") -> "Figure":
        """Draw a metric at K = 10, 20, ... as a matplotlib figure, with one line per direction.

        Args:
            metric: "precision" (precision-scope@K), "recall" or "hit_rate".

        Raises:
            InputError: the metric is unknown, or matplotlib is not installed.
        """
        if metric not in SCOPE_METRICS:
            raise InputError(f"plot_scope: metric is '{metric}'; choose from {', '.join(SCOPE_METRICS)}")
        scopes = {result.name: result.curves.scope for result in self.directions}
        series = {name: (scope.cutoffs.tolist(), getattr(scope, metric).tolist()) for name, scope in scopes.items()}
        return panels([partial(draw_curves, series=series, x="K", y=f"{metric.replace('_', ' ')}@K")])

    def to_pandas(self) -> Any:
        """Return all metrics as a `pandas.DataFrame`, one row per metric and one column per direction.

        Raises:
            InputError: pandas is not installed.
        """
        from aadml.retrieval.summary import figures_of

        pandas = optional("pandas", "to_pandas", "pandas")
        return pandas.DataFrame(figures_of(self), index=[result.name for result in self.directions]).T


def _ranks(first: FirstRanks) -> Figures:
    return {("median_rank",): first.median, ("mean_rank",): float(first.expected.mean())}
