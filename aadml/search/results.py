"""The answer to a question: hits, their scores and what these mean."""

from collections.abc import Mapping
from dataclasses import dataclass

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.search.best_moment import Moment
from aadml.search.calibration import Calibration
from aadml.search.store import Item


@dataclass(frozen=True)
class Hit:
    """One item that was found.

    Attributes:
        item: the clip.
        number: by which the index knows it.
        score: in the unit of the similarity: a cosine, say.
        probability: that it fits; None where the index has no calibration of such a question.
        media: modality -> path of its file; empty where the index does not know it.
        moment: where it fits best; None where nothing was kept over time.
    """

    item: Item
    number: int
    score: float
    probability: float | None
    media: Mapping[str, str]
    moment: Moment | None = None

    @property
    def id(self) -> str:
        """Name of the clip."""
        return self.item.id


@dataclass(frozen=True)
class Found:
    """The answer to a question.

    Attributes:
        hits: best first; equal scores in the order of their ids.
        asked: modalities of the question that were compared.
        to: modality of the items.
        among: how many items were searched.
        similarity: by which they were compared.
        calibration: what the probabilities rest on; None where there are none.
        looked_at: how many items were scored; fewer than `among` where the search was approximate.
    """

    hits: tuple[Hit, ...]
    asked: tuple[Modality, ...]
    to: Modality
    among: int
    similarity: str
    calibration: Calibration | None = None
    looked_at: int | None = None

    @property
    def nothing_fits(self) -> bool | None:
        """Whether even the best hit is below the threshold; None where the index has none."""
        if self.calibration is None or self.calibration.threshold is None:
            return None
        return not self.hits or (self.hits[0].probability or 0.0) < self.calibration.threshold

    def to_json(self) -> JsonObject:
        """Give the plain values."""
        hits: list[JsonObject] = [
            {**self.hit_to_json(rank), "media": dict(hit.media)} for rank, hit in enumerate(self.hits, 1)
        ]
        return {**self.facts_to_json(), "hits": hits}

    def facts_to_json(self) -> dict[str, Json]:
        """Give the plain values of the answer as a whole."""
        one = self.calibration
        said: JsonObject | None = None
        if one is not None:
            said = {"threshold": one.threshold, "precision": one.precision, "clips": one.clips}
        asked: dict[str, Json] = {
            "asked": list(self.asked),
            "to": self.to,
            "among": self.among,
            "looked_at": self.looked_at,
        }
        return {**asked, "similarity": self.similarity, "nothing_fits": self.nothing_fits, "calibration": said}

    def hit_to_json(self, rank: int) -> dict[str, Json]:
        """Give the plain values of the hit of a rank, without the paths of its files."""
        hit = self.hits[rank - 1]
        return {
            "rank": rank, "id": hit.id, "score": hit.score, "probability": hit.probability, "label": hit.item.label,
            "split": hit.item.split, "columns": dict(hit.item.columns),
            "moment": None if hit.moment is None else {"seconds": hit.moment.seconds, "score": hit.moment.score},
        }  # fmt: skip
