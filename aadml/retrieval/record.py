"""What `evaluation.json` holds, typed: written from an evaluation, and read back by everything that tabulates runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from aadml.comparison.relevance import LABEL
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject, inner, nested, number, read_as
from aadml.retrieval.metric_names import CHANCE_OF, OTHER_GALLERIES, place_of
from aadml.retrieval.sampling import QuerySample

_RUN = ("label", "seed", "selected_epoch", "epochs", "steps", "train_map", "seconds", "parameters", "verdicts")


@dataclass(frozen=True)
class ScopeCurve:
    """Figures at K = 10, 20, ... as far as the gallery goes."""

    k: list[int]
    precision: list[float]
    recall: list[float]
    hit_rate: list[float]


@dataclass(frozen=True)
class PerQuery:
    """The average precision of each query, with its name."""

    id: list[str]
    average_precision: list[float]


@dataclass(frozen=True, kw_only=True)
class DirectionRecord:
    """The figures of one direction; see `aadml.retrieval.results.DirectionResult`.

    Attributes:
        figures: every other figure, under its place in the JSON ("map_at_r", "recall_at", "metrics"...).
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
    by_class: Mapping[str, Mapping[str, float]]
    per_query: PerQuery | None = None
    figures: JsonObject = field(default_factory=dict)

    def figure(self, metric: str) -> float | None:
        """Give the figure of a metric ("map", "recall@10"); None where it was not computed."""
        value = inner({"map": self.map, **self.figures}, *place_of(metric))
        return None if value is None else number(value)

    def chance_of(self, metric: str) -> float | None:
        """Give what a random order has of a metric; None where that was not computed."""
        place = place_of(metric)
        path = (place[0], "chance") if metric in OTHER_GALLERIES else (CHANCE_OF, *place)
        value = self.chance if metric == "map" else inner(self.figures, *path)
        return None if value is None else number(value)

    def to_json(self) -> JsonObject:
        """Give every figure under its name."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "figures"}
        curves = {"scope": vars(self.scope), "by_class": dict(self.by_class)}
        queries = {} if self.per_query is None else {"per_query": vars(self.per_query)}
        plain = {key: value for key, value in own.items() if key not in ("scope", "by_class", "per_query")}
        return plain | dict(self.figures) | curves | queries


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord:
    """The evaluation of a model: the figures of every direction, and the facts of the run that made them.

    Attributes:
        protocol: how the embeddings were made.
        split: that was scored.
        similarity: under which vectors were compared.
        gallery: what each query ranked: "full" (its own clip included), "without-partner" or "disjoint".
        relevance: by what items are relevant; left out of the JSON where it is the class ("label").
        sample: of the queries; left out of the JSON where all asked.
        chance: mean chance level of MAP.
        tie_rate: mean over the directions.
        map_mean: mean MAP of the directions.
        directions: name ("audio-visual") -> figures.
        label_space: modality -> accuracy and log-loss, where vectors have a dimension a class.
        label: what was trained; None, as all that follows, where no run is behind it.
        seed: of the run.
        selected_epoch: None where none was chosen.
        epochs: that were trained.
        steps: of the optimizers, over all epochs.
        train_map: mean MAP of the training clips under the weights that were kept; of a sample of queries where they
            are many.
        seconds: that fitting took.
        parameters: how many were fitted.
        verdicts: what a person must know before believing the figures.
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

    def figure(self, metric: str, direction: str | None = None) -> float | None:
        """Give the figure of a metric in a direction, or its mean over all; None where it was not computed."""
        chosen = self.directions.values() if direction is None else [self.directions[direction]]
        return _mean([one.figure(metric) for one in chosen])

    def chance_of(self, metric: str) -> float | None:
        """Give the mean over all directions of what a random order has of a metric; None where it was not computed."""
        return _mean([one.chance_of(metric) for one in self.directions.values()])

    def with_figures(self, metrics: Iterable[str], other: "EvaluationRecord") -> "EvaluationRecord":
        """Take over the figures of some metrics from another evaluation of the same embeddings."""
        directions = dict(self.directions)
        for metric in metrics:
            for name, one in directions.items():
                value = other.directions[name].figure(metric)
                directions[name] = replace(one, figures=placed(one.figures, place_of(metric), value))
        return replace(self, directions=directions)

    def to_json(self) -> JsonObject:
        """Give every figure and fact under its name, ready for `json.dumps`; what does not apply is left out."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        own["directions"] = {name: one.to_json() for name, one in self.directions.items()}
        own["sample"] = None if self.sample is None else asdict(self.sample)
        if not self.label_space:
            del own["label_space"]
        if self.relevance == LABEL.name:
            del own["relevance"]
        absent = {
            key for key in ("sample", *_RUN) if own[key] is None and (key != "selected_epoch" or self.label is None)
        }
        return {key: value for key, value in own.items() if key not in absent}

    @classmethod
    def from_json(cls, content: JsonObject, where: str | Path) -> "EvaluationRecord":
        """Read what `to_json` wrote.

        Args:
            content: as read from JSON.
            where: its file, for the message.

        Raises:
            InputError: something else stands there.
        """
        names = {one.name for one in fields(cls)}
        own = {key: value for key, value in content.items() if key in names}
        own["directions"] = {name: _grouped(one) for name, one in nested(content, "directions").items()}
        try:
            return read_as(cls, own, where)
        except InputError as error:
            raise type(error)(f"{error}; evaluate the run again") from error


def _grouped(direction: Json) -> Json:
    """Put the figures of a direction that have no field of their own where its record has them."""
    if not isinstance(direction, Mapping):
        return direction
    names = {one.name for one in fields(DirectionRecord)} - {"figures"}
    own = {key: value for key, value in direction.items() if key in names}
    return {**own, "figures": {key: value for key, value in direction.items() if key not in names}}


def _mean(values: Sequence[float | None]) -> float | None:
    """Average what is known of all; None where something is not."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def placed(figures: JsonObject, place: tuple[str, ...], value: float | None) -> JsonObject:
    """Return figures with one more, at a place of nested keys."""
    key, *rest = place
    return {**figures, key: placed(nested(figures, key), tuple(rest), value) if rest else value}
