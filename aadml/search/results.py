"""Results of a search: hits, scores and probabilities."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.segment import Segment
from aadml.search.best_moment import Moment
from aadml.search.calibration import Calibration
from aadml.search.store import Item


@dataclass(frozen=True)
class Hit:
    """One result of a search.

    Attributes:
        item: the clip or caption.
        number: number of the item in the index.
        score: score in the unit of the similarity, such as a cosine.
        probability: probability that the hit is relevant; None if the index has no calibration for this kind of query.
        media: modality -> path of the file; empty if unknown.
        moment: interval that matches the query best; None if the index stores fewer than two intervals of the clip.
        second_key: tie-breaker for hits of equal score, see `aadml.retrieval.posteriors`; None if unused.
        ranks: modality -> rank of the clip, with the modality of the best match first; empty after a search of one
            modality.
    """

    item: Item
    number: int
    score: float
    probability: float | None
    media: Mapping[str, str]
    moment: Moment | None = None
    second_key: float | None = None
    ranks: Mapping[Modality, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Id of the clip, or `CLIP#N` for caption N of a clip."""
        return self.item.id

    @property
    def range(self) -> str:
        """Times of the clip in its recording, such as "10.0-20.0 s"; "" for a whole recording."""
        return f"{self.item.segment} s" if str(self.item.segment) else ""


@dataclass(frozen=True)
class Found:
    """Results of a search, with the facts of the search.

    Attributes:
        hits: best first. Hits of equal score are ordered by second key, then by id; fused hits only by id.
        asked: modalities of the query that were compared.
        to: modality of the items; several modalities are joined by "+".
        among: number of items that were searched.
        similarity: similarity of the vectors, or "reciprocal rank" or "probability" for several modalities.
        calibration: calibration of the probabilities; None without probabilities, or for several modalities.
        uncalibrated: clause on why there are no probabilities; empty if there are probabilities.
    """

    hits: tuple[Hit, ...]
    asked: tuple[Modality, ...]
    to: Modality
    among: int
    similarity: str
    calibration: Calibration | None = None
    uncalibrated: str = ""

    @property
    def nothing_fits(self) -> bool | None:
        """Whether no hit reaches the threshold; None if the search has no threshold."""
        if self.calibration is None or self.calibration.threshold is None:
            return None
        return not self.hits or (self.hits[0].probability or 0.0) < self.calibration.threshold

    def to_json(self) -> JsonObject:
        """Return the results as JSON values."""
        hits = [{**self.hit_to_json(rank), "media": dict(hit.media)} for rank, hit in enumerate(self.hits, 1)]
        return {**self.facts_to_json(), "hits": hits}

    def facts_to_json(self) -> JsonObject:
        """Return the facts of the search as JSON values, without the hits; `looked_at` equals `among`."""
        by = self.calibration
        calibration = None if by is None else {"threshold": by.threshold, "precision": by.precision, "clips": by.clips}
        return {
            "asked": list(self.asked), "to": self.to, "among": self.among, "looked_at": self.among,
            "similarity": self.similarity, "nothing_fits": self.nothing_fits, "calibration": calibration,
        }  # fmt: skip

    def hit_to_json(self, rank: int) -> JsonObject:
        """Return the hit of a rank (from 1) as JSON values, without the paths of its files."""
        hit = self.hits[rank - 1]
        return {
            "rank": rank, "id": hit.id, "score": hit.score, "second_key": hit.second_key,
            "probability": hit.probability, "label": hit.item.label, "split": hit.item.split,
            "columns": dict(hit.item.columns), "range": times_of(hit.item.segment),
            "caption": None if hit.item.caption is None else asdict(hit.item.caption),
            "moment": None if hit.moment is None else {"seconds": hit.moment.seconds, "score": hit.moment.score},
            "ranks": dict(hit.ranks),
        }  # fmt: skip


def times_of(segment: Segment) -> list[float | None] | None:
    """Return start and end of a segment in seconds (None for an open end), or None for a whole recording."""
    return None if segment.is_whole else [segment.start, None if segment.end == math.inf else segment.end]
