"""What an extraction job is: which clips, described how, and the fingerprint of everything that decides the values."""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from aadml.feature_extraction.backbones import Extractor, mean_over_time
from aadml.feature_extraction.feature_file import Incomplete
from aadml.feature_extraction.frontends.whitening import FITS
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.manifest import TEXT_COLUMNS, Manifest, Row
from aadml.feature_extraction.media import Limits, decoder_versions


@dataclass(frozen=True)
class ExtractionPlan:
    """One job, or one shard of it.

    Attributes:
        manifest: all clips.
        extractors: one a modality.
        limits: what is too large to be decoded.
        shard: (i, n): the job does the rows i, i + n, i + 2n ...
        sequence: whether descriptions over time stand in the feature file.
        incomplete: what to do with clips that lack a modality and have another.
    """

    manifest: Manifest
    extractors: tuple[Extractor, ...]
    limits: Limits
    shard: tuple[int, int]
    sequence: bool
    incomplete: Incomplete = "keep"

    def __post_init__(self) -> None:
        """Refuse a plan that cannot be carried out."""
        index, count = self.shard
        if not 0 <= index < count:
            raise InputError(f"shard {index}/{count}: of N shards the first is 0/N, the last N-1/N")
        if not self.extractors or len({one.modality for one in self.extractors}) != len(self.extractors):
            raise InputError("one extractor a modality is needed, of at least one modality")
        if count > 1:
            for one in self.extractors:
                _pending(one)
        if "text" in self.by_modality and self.manifest.rows and "text" not in self.manifest.rows[0].media:
            raise InputError(
                f"{self.manifest.path}: has no text; a column {', '.join(TEXT_COLUMNS[:-1])} or {TEXT_COLUMNS[-1]} "
                "is needed"
            )

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The clips of this shard, in the manifest's order."""
        return self.manifest.rows[self.shard[0] :: self.shard[1]]

    @cached_property
    def by_modality(self) -> dict[str, Extractor]:
        """The extractors, by what they listen to or look at; that of text stands for each text that a clip has."""
        found = {one.modality: one for one in self.extractors}
        if "text" in found:
            found |= {name: replace(found["text"], modality=name) for name in self.manifest.further_texts}
        return found

    @cached_property
    def provenance(self) -> dict[str, JsonObject]:
        """By modality, what the feature file says of its origin."""
        return {
            one.modality: {
                "extractor": one.name,
                "dimension": one.dimension,
                "parameters": dict(one.parameters),
                "about": dict(one.about),
                "inputs": dict(vars(one.inputs)),
                "decoder": decoder_versions(),
                "decoding": one.inputs.edition,
                "limits": dict(vars(self.limits)),
            }
            for one in self.by_modality.values()
        }

    @cached_property
    def settings(self) -> dict[str, str]:
        """By modality, the fingerprint of everything that decides what is recorded."""
        return {
            one.modality: _digest(
                {
                    **self.provenance[one.modality],
                    "minimum_seconds": one.minimum_seconds,
                    "keeps_time": self.keeps_time(one),
                }
            )[:16]
            for one in self.by_modality.values()
        }

    @cached_property
    def pending(self) -> dict[str, JsonObject]:
        """By modality, what a shard leaves to be fitted where all shards are merged."""
        if self.shard[1] == 1:
            return {}
        return {one.modality: _pending(one) for one in self.extractors if one.fit is not None}

    def keeps_time(self, one: Extractor) -> bool:
        """Tell whether descriptions over time are recorded: for the file, or for what is fitted on them in the end."""
        return self.sequence or one.fit is not None


def fingerprint(manifest: Manifest) -> str:
    """Name the content of a manifest, wherever it lies: shards belong together only where it is the same."""
    digest = hashlib.sha256()
    for number, row in enumerate(manifest.rows):  # as a list of all would be written, without the list
        text = json.dumps([row.id, row.label, row.split, row.columns, *row.more_labels], sort_keys=True)
        digest.update(f"{', ' if number else '['}{text}".encode())
    digest.update(b"]")
    return digest.hexdigest()


def _pending(one: Extractor) -> JsonObject:
    """Name what an extractor fits, and its options, so that it can be done without the extractor."""
    for name, kind in FITS.items():
        if type(one.fit) is kind and one.pool is mean_over_time:
            return {"name": name, **vars(one.fit)}
    if one.fit is None:
        return {}
    raise InputError(
        f"{one.name}: is fitted on all training clips, of which a shard sees only a part, in a way that merging "
        "does not know; extract without --shard, or extract the features it is fitted on and merge those"
    )


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
