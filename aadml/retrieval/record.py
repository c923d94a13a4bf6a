"""Typed content of `evaluation.json`, which is written from an evaluation and read for tables of runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from aadml.comparison.relevance import LABEL
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, nested, read_as
from aadml.retrieval.metric_names import CHANCE_OF, OTHER_GALLERIES, place_of
from aadml.retrieval.sampling import QuerySample

Figures = Mapping[tuple[str, ...], float]
"""Keys of a metric in the JSON of a direction -> value."""

CONDITIONS = ("protocol", "split", "similarity", "gallery", "relevance", "sample")
"""Fields of an evaluation that state how embeddings were compared."""
_RUN = ("label", "seed", "selected_epoch", "epochs", "steps", "train_map", "seconds", "parameters", "verdicts")


@dataclass(frozen=True)
class ScopeCurve:
    """Metrics at K = 10, 20, 30 and so on, up to the smaller of 1000 and the size of the gallery."""

    k: list[int]
    precision: list[float]
    recall: list[float]
    hit_rate: list[float]


@dataclass(frozen=True)
class PerQuery:
    """Average precision of each query, with its id."""

    id: list[str]
    average_precision: list[float]


@dataclass(frozen=True)
class PerUnit:
    """Ids of the clips of the test set, or of clusters of clips, each with a pseudo-value of the mean MAP."""

    id: list[str]
    map: list[float]


@dataclass(frozen=True, kw_only=True)
class DirectionRecord:
    """Metrics of one direction; see `aadml.retrieval.results.DirectionResult`.

    Attributes:
        figures: keys in the JSON, such as ("map_at_r",) or ("recall_at", "10"), -> value, for all other metrics.
    """

    map: float
    map_bounds: list[float]
    map_interval: list[float]
    chance: float
    tie_rate: float
    queries: int
    queries_without_relevant: int
    gallery: int
    scope: ScopeCurve
    by_class: Mapping[str, Mapping[str, int | float]]
    per_query: PerQuery | None = None
    figures: Figures = field(default_factory=dict)

    def figure(self, metric: str) -> float | None:
        """Return a metric ("map", "recall@10"); None if it was not computed.

        Raises:
            InputError: the text after an @ is not a cutoff.
        """
        return self.map if metric == "map" else self.figures.get(place_of(metric))

    def chance_of(self, metric: str) -> float | None:
        """Return the chance level of a metric; None if this chance level was not computed.

        Raises:
            InputError: the text after an @ is not a cutoff.
        """
        place = place_of(metric)
        path = (place[0], "chance") if metric in OTHER_GALLERIES else (CHANCE_OF, *place)
        return self.chance if metric == "map" else self.figures.get(path)

    def to_json(self) -> JsonObject:
        """Return all metrics by name."""
        nested_fields = ("figures", "scope", "by_class", "per_query")
        numbers = {name: value for name, value in vars(self).items() if name not in nested_fields}
        queries = {} if self.per_query is None else {"per_query": vars(self.per_query)}
        return {**numbers, **_by_key(self.figures), "scope": vars(self.scope), "by_class": self.by_class, **queries}


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord:
    """Evaluation of a model: the metrics of every direction, and facts about the run.

    Attributes:
        protocol: name of the protocol that made the embeddings.
        split: scored split.
        similarity: similarity of two vectors.
        gallery: gallery of each query: "full" (its own clip included), "without-partner" or "disjoint".
        relevance: rule of relevance; omitted from the JSON if it is the class ("label").
        sample: sample of the queries; omitted from the JSON if all clips were queries.
        chance: mean chance level of MAP.
        tie_rate: mean tie rate of the directions.
        map_mean: mean MAP of the directions.
        map_mean_interval: 95 % interval of the mean MAP over test sets; None in earlier files.
        per_unit: pseudo-values of the mean MAP; omitted from the JSON if not requested.
        directions: name ("audio-visual") -> metrics.
        label_space: modality -> accuracy and log-loss, if vectors have one dimension per class.
        label: name of the trained method. This and all following fields are None without a run.
        seed: seed of the run.
        selected_epoch: number of the selected epoch; None if no epoch was selected.
        epochs: number of trained epochs.
        steps: number of optimizer steps over all epochs.
        train_map: mean MAP of the training clips, or of a sample of a large set, under the selected weights.
        seconds: duration of the fit.
        parameters: number of fitted parameters.
        verdicts: warnings about the results.
    """

    protocol: str
    split: str
    similarity: str
    gallery: str = "full"
    relevance: str = LABEL.name
    sample: QuerySample | None = None
    chance: float
    tie_rate: float
    map_mean: float
    map_mean_interval: list[float] | None = None
    per_unit: PerUnit | None = None
    directions: Mapping[str, DirectionRecord]
    label_space: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    label: str | None = None
    seed: int | None = None
    selected_epoch: int | None = None
    epochs: int | None = None
    steps: int | None = None
    train_map: float | None = None
    seconds: float | None = None
    parameters: int | None = None
    verdicts: list[str] | None = None

    @property
    def places(self) -> list[tuple[str, ...]]:
        """Keys of the metrics that every direction has; cutoffs depend on the size of the gallery."""
        first, *others = (record.figures for record in self.directions.values())
        return [place for place in first if all(place in figures for figures in others)]

    def figure(self, metric: str, direction: str | None = None) -> float | None:
        """Return a metric of one direction, or the mean over all directions if `direction` is None.

        The result is None if a required direction lacks the metric.

        Raises:
            KeyError: the direction is unknown.
            InputError: the text after an @ is not a cutoff.
        """
        chosen = self.directions.values() if direction is None else [self.directions[direction]]
        return _mean([record.figure(metric) for record in chosen])

    def chance_of(self, metric: str) -> float | None:
        """Return the mean chance level of a metric over all directions; None if a direction lacks a chance level.

        Raises:
            InputError: the text after an @ is not a cutoff.
        """
        return _mean([record.chance_of(metric) for record in self.directions.values()])

    def with_figures(self, metrics: Iterable[str], other: "EvaluationRecord") -> "EvaluationRecord":
        """Return this record with some metrics added from another evaluation of the same embeddings."""
        places = [place_of(metric) for metric in metrics]
        directions = {}
        for name, record in self.directions.items():
            added = {place: value for place, value in other.directions[name].figures.items() if place in places}
            directions[name] = replace(record, figures={**record.figures, **added})
        return replace(self, directions=directions)

    def to_json(self) -> JsonObject:
        """Return every applicable field by name, ready for `json.dumps`."""
        content = {
            **vars(self),
            "directions": {name: record.to_json() for name, record in self.directions.items()},
            **{
                name: None if (part := getattr(self, name)) is None else asdict(part) for name in ("sample", "per_unit")
            },
        }
        omitted = {key for key in ("sample", "map_mean_interval", "per_unit", *_RUN) if content[key] is None}
        if self.label is not None:
            omitted.discard("selected_epoch")
        if not self.label_space:
            omitted.add("label_space")
        if self.relevance == LABEL.name:
            omitted.add("relevance")
        return {key: value for key, value in content.items() if key not in omitted}

    @classmethod
    def from_json(cls, content: JsonObject, where: str | Path) -> "EvaluationRecord":
        """Read the result of `to_json`.

        Args:
            content: JSON object.
            where: path of its file, for messages.

        Raises:
            InputError: the content is not an evaluation.
        """
        names = {entry.name for entry in fields(cls)}
        known = {entry.name for entry in fields(DirectionRecord)} - {"figures"}
        written = nested(content, "directions")
        values = {key: value for key, value in content.items() if key in names}
        values["directions"] = {
            name: {key: value for key, value in nested(direction).items() if key in known}
            for name, direction in written.items()
        }
        try:
            record = read_as(cls, values, where)
        except InputError as error:
            raise type(error)(f"{error}, or evaluate the run again") from error
        directions = {
            name: replace(direction, figures={p: v for p, v in _numbers(written[name]) if p[0] not in known})
            for name, direction in record.directions.items()
        }
        return replace(record, directions=directions)


def _by_key(figures: Figures) -> JsonObject:
    groups: dict[str, dict[tuple[str, ...], float]] = {}
    for (key, *rest), value in figures.items():
        groups.setdefault(key, {})[tuple(rest)] = value
    return {key: group[()] if () in group else _by_key(group) for key, group in groups.items()}


def _numbers(content: object, *path: str) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _numbers(value, *path, key)
    elif isinstance(content, int | float):
        yield path, content


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
