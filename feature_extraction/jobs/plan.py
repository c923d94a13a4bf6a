"""Plan of an extraction job: clips, extractors, and fingerprints of the settings that determine the values."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from aadml.feature_extraction.backbones import Extractor, Fit, mean_over_time
from aadml.feature_extraction.feature_file.content import PendingFit
from aadml.feature_extraction.frontends.whitening import PcaWhitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.processor_time import require_seconds
from aadml.feature_extraction.manifest import TEXT_COLUMNS, Manifest, Row
from aadml.feature_extraction.media.decoding import decoder_versions
from aadml.feature_extraction.media.inputs import Limits

TIME_LIMIT = 120.0
"""Seconds of processor time for the decoding of one modality of a clip."""
PCA_WHITENING = "pca-whitening"
"""Name of the fit that shards leave to `merge`."""


@dataclass(frozen=True)
class ExtractionPlan:
    """Plan of a job, or of one shard of a job.

    Attributes:
        manifest: all clips.
        output: the feature file to create.
        extractors: at least one, and one per modality.
        engine: decoding engine: "local", "ray", or "ray:ADDRESS" for a running cluster.
        workers: number of decoding processes; None for one process per processor.
        time_limit: seconds of processor time for the decoding of one modality of a clip.
        limits: limits of the media that are decoded.
        shard: (i, n), for a job that processes the rows i, i + n, i + 2n ...; `merge` joins the files.
        retry_failed: whether clips with recorded failures are tried again.
        sequence: whether the feature file contains features over time beside the pooled features.
        keeps_deleted: whether clips keep their features after their media were deleted.
        command: command that continues the job, for `status`.
    """

    manifest: Manifest
    output: Path
    extractors: Sequence[Extractor]
    engine: str = "local"
    workers: int | None = None
    time_limit: float = TIME_LIMIT
    limits: Limits = field(default_factory=Limits)
    shard: tuple[int, int] = (0, 1)
    retry_failed: bool = False
    sequence: bool = False
    keeps_deleted: bool = True
    command: str = ""

    def __post_init__(self) -> None:
        """Raise InputError for a plan that cannot be executed."""
        index, count = self.shard
        if not 0 <= index < count:
            raise InputError(f"shard is ({index}, {count}); pass (i, n) with i from 0 to n-1")
        _ = self.pending  # raises InputError for a fit that cannot be merged
        if "text" in self.by_modality and self.manifest.rows and "text" not in self.manifest.rows[0].media:
            raise InputError(
                f"{self.manifest.path} has no text for the extractor {self.by_modality['text'].name}; "
                f"add a column {', '.join(TEXT_COLUMNS[:-1])} or {TEXT_COLUMNS[-1]}"
            )
        require_seconds("time limit", self.time_limit)
        if self.workers is not None and self.workers < 1:
            raise InputError(f"the number of workers is {self.workers}; pass a number above zero")

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Clips of this shard, in the order of the manifest."""
        return self.manifest.rows[self.shard[0] :: self.shard[1]]

    @cached_property
    def by_modality(self) -> dict[str, Extractor]:
        """Extractors by modality; the text extractor is repeated for each further text of a clip."""
        extractors = {extractor.modality: extractor for extractor in self.extractors}
        if "text" in extractors:
            extractors |= {name: replace(extractors["text"], modality=name) for name in self.manifest.further_texts}
        return extractors

    @cached_property
    def provenance(self) -> dict[str, JsonObject]:
        """Provenance of the features for the feature file, by modality."""
        return {
            name: {
                "extractor": extractor.name,
                "dimension": extractor.dimension,
                "parameters": dict(extractor.parameters),
                "about": dict(extractor.about),
                "inputs": dict(vars(extractor.inputs)),
                "decoder": decoder_versions(),
                "decoding": extractor.inputs.edition,
                "limits": dict(vars(self.limits)),
            }
            for name, extractor in self.by_modality.items()
        }

    @cached_property
    def settings(self) -> dict[str, str]:
        """Fingerprint of all settings that determine the recorded values, by modality."""
        fingerprints = {}
        for name, extractor in self.by_modality.items():
            further = {"minimum_seconds": extractor.minimum_seconds, "keeps_time": self.keeps_time(extractor)}
            text = json.dumps({**self.provenance[name], **further}, sort_keys=True)
            fingerprints[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
        return fingerprints

    @cached_property
    def pending(self) -> dict[str, PendingFit]:
        """Fits that a shard leaves to `merge`, by modality."""
        if self.shard[1] == 1:
            return {}
        return {each.modality: _pending(each, each.fit) for each in self.extractors if each.fit is not None}

    def keeps_time(self, extractor: Extractor) -> bool:
        """Return whether features over time are recorded, for the file or for a fit."""
        return self.sequence or extractor.fit is not None


def fingerprint(manifest: Manifest) -> str:
    """Compute the SHA-256 of the ids, classes, splits and further columns of a manifest, in hexadecimal digits.

    The fingerprint is equal for all shards of a job. The paths of manifest and media have no effect.
    """
    digest = hashlib.sha256()
    for number, row in enumerate(manifest.rows):  # text of a JSON list, without building the list
        text = json.dumps([row.id, row.label, row.split, row.columns, *row.more_labels], sort_keys=True)
        digest.update(f"{', ' if number else '['}{text}".encode())
    digest.update(b"]")
    return digest.hexdigest()


def _pending(extractor: Extractor, fit: Fit) -> PendingFit:
    """Return a description of an extractor's fit.

    `merge` builds the fit from this description, without the extractor.

    Raises:
        InputError: merging does not support the fit.
    """
    if isinstance(fit, PcaWhitening) and extractor.pool is mean_over_time:
        return PendingFit(PCA_WHITENING, fit.dimension, fit.eight_bit)
    raise InputError(
        f"{extractor.name}: its fit needs all training clips, and merging does not support this fit; "
        "extract all clips without shards"
    )
