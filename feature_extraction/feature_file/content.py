"""What a feature file holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows
from aadml.feature_extraction.ground.json_values import JsonObject, inner, texts

FORMAT = "aadml-features"
UNLABELLED = -1
"""The label of a clip without one: of every clip of a file without class names."""
DRAWN = "synthetic"
"""The extractor of features that are drawn numbers."""

Incomplete = Literal["keep", "drop"]
"""What to do with a clip that lacks a modality and has another: keep it, masked, or count it as failed."""


@dataclass(frozen=True)
class Timeline:
    """Descriptions over time of all clips, one after the other.

    Attributes:
        values: (total, d) float32; clip i owns rows `offsets[i]` to `offsets[i + 1]`.
        offsets: (n + 1,) int64, not decreasing, from 0 to total.
        times: (total,) float64, when each row begins, in seconds after the beginning of its clip's file; None where a
            file of version 1 did not keep it. A row stands until the next one begins.
    """

    values: NDArray[np.float32]
    offsets: NDArray[np.int64]
    times: NDArray[np.float64] | None = None

    def rows_at(self, clip: int, seconds: Sequence[float] | NDArray[np.float64]) -> NDArray[np.int64]:
        """Find which row of a clip stands at each of some moments.

        Rows of two modalities are joined by asking both for the same moments; the label of AVE's second s, for one, is
        joined by asking for s + 0.5.

        Args:
            clip: number of the clip.
            seconds: (m,) moments, in seconds after the beginning of the clip's file.

        Returns:
            (m,) rows of `values`; -1 before the first row. The last row stands for ever.

        Raises:
            ValueError: there are no times.
        """
        if self.times is None:
            raise ValueError("this sequence has no times (a feature file of version 1); extract it again")
        start, stop = int(self.offsets[clip]), int(self.offsets[clip + 1])
        place = np.searchsorted(self.times[start:stop], np.asarray(seconds, dtype=np.float64) + 1e-9, side="right")
        return np.where(place > 0, start + place - 1, -1).astype(np.int64)

    def select(self, clips: NDArray[np.int64]) -> "Timeline":
        """Give the rows of some clips, in that order."""
        starts, lengths = self.offsets[clips], np.diff(self.offsets)[clips]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Timeline(self.values[rows], offsets, None if self.times is None else self.times[rows])


@dataclass(frozen=True)
class Texts:
    """All texts of clips that have several, in the order of the clips.

    Attributes:
        values: (m, d) float32.
        rows: (m,) int64, the clip of each text, not decreasing.
    """

    values: NDArray[np.float32]
    rows: NDArray[np.int64]

    @classmethod
    def sorted(cls, values: NDArray[np.float32], rows: NDArray[np.int64]) -> "Texts":
        """Take texts in any order; those of one clip keep theirs."""
        order = np.argsort(rows, kind="stable")
        return cls(values[order], rows[order])

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Say which texts (m,) are the first of their clip."""
        return np.diff(self.rows, prepend=-1) > 0

    def first_of_each(self, clips: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Give the first text of each of n clips (n, d), zeros where it has none, and who has one (n,)."""
        values = np.zeros((clips, self.values.shape[1]), dtype=np.float32)
        values[self.rows[self.is_first]] = self.values[self.is_first]
        return values, np.isin(np.arange(clips), self.rows)

    def select(self, clips: NDArray[np.int64]) -> "Texts":
        """Give the texts of some clips, in that order."""
        starts, stops = (np.searchsorted(self.rows, clips, side=side) for side in ("left", "right"))
        places = [np.arange(start, stop) for start, stop in zip(starts, stops, strict=True)]
        own = np.concatenate([np.empty(0, dtype=np.int64), *places])
        return Texts(self.values[own], np.repeat(np.arange(len(clips)), stops - starts))


@dataclass(frozen=True)
class Shard:
    """Which part of a job a file holds; a whole job has none.

    Attributes:
        index: of the shard, from 0.
        count: of shards. Shard i holds the manifest's rows i, i + count, i + 2 count ...
        total: rows of the manifest.
        manifest: fingerprint of the manifest.
        rows: (n,) int64, the manifest's row of each clip of the file.
        failures: of each clip that failed: its row, and what the list of failures says of it.
        pending: by modality, what merging has to fit to the training clips of all shards: the name of the kind, and its
            options. Until then the features and sequences are those from before.
        sequence: whether a job with anything pending keeps the descriptions over time; here they are kept anyway.
        incomplete: what the job did with clips that lack a modality and have another: "keep" or "drop".
    """

    index: int
    count: int
    total: int
    manifest: str
    rows: NDArray[np.int64]
    failures: tuple[tuple[int, tuple[str, ...]], ...] = ()
    pending: Mapping[str, JsonObject] = field(default_factory=dict)
    sequence: bool = False
    incomplete: Incomplete = "keep"


@dataclass(frozen=True)
class FeatureFile:
    """The content of a feature file; row i of every field is the same clip.

    Attributes:
        features: per modality (n, d) float32, finite.
        labels: (n,) int64, positions in `class_names`; UNLABELLED where a clip has no label. Of a
            clip with several classes, the first.
        ids: n names of clips.
        splits: n of `train`, `valid`, `test`.
        class_names: C names of classes.
        provenance: per modality what made the features (extractor, weights, parameters, versions), JSON-able.
        columns: further columns of the manifest, each of n strings.
        sequences: per modality the descriptions over time, where they were kept.
        fitted: per modality named arrays that were fitted on the training rows.
        shard: which part of a job this is, where it is a part.
        all_labels: (n, C) uint8, 1 where a clip is of a class; None where no clip of the job is of several.
        fingerprints: per modality (n, 256) uint8, by which a clip is known again after another encoding; see
            `aadml.feature_extraction.media.fingerprints`. Files made elsewhere, and older ones, have none.
        present: per modality (n,) bool, whether a clip has it; a modality that all have is left out. The features of a
            clip that lacks it are zeros, and a sequence has no rows of it.
        texts: all texts, where some clip has several; the features of `text` are the first of each clip.
    """

    features: Mapping[str, NDArray[np.float32]]
    labels: NDArray[np.int64]
    ids: tuple[str, ...]
    splits: tuple[str, ...]
    class_names: tuple[str, ...]
    provenance: Mapping[str, JsonObject] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sequences: Mapping[str, Timeline] = field(default_factory=dict)
    fitted: Mapping[str, Mapping[str, NDArray[np.float32]]] = field(default_factory=dict)
    shard: Shard | None = None
    all_labels: NDArray[np.uint8] | None = None
    fingerprints: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    present: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    texts: Texts | None = None

    def has(self, modality: str) -> NDArray[np.bool_]:
        """Say which clips (n,) have a modality."""
        return self.present.get(modality, np.ones(len(self.ids), dtype=np.bool_))

    def rows(self, split: str) -> NDArray[np.int64]:
        """Give the row numbers of one split, in order."""
        return np.flatnonzero(np.asarray(self.splits) == split).astype(np.int64)

    def select(self, rows: NDArray[np.int64]) -> "FeatureFile":
        """Give the clips `rows`, in that order; they are no shard of a job any more."""
        return replace(
            self,
            features={name: values[rows] for name, values in self.features.items()},
            labels=self.labels[rows],
            ids=tuple(self.ids[row] for row in rows),
            splits=tuple(self.splits[row] for row in rows),
            columns={name: tuple(values[row] for row in rows) for name, values in self.columns.items()},
            sequences={name: timeline.select(rows) for name, timeline in self.sequences.items()},
            shard=None,
            all_labels=None if self.all_labels is None else self.all_labels[rows],
            fingerprints={name: values[rows] for name, values in self.fingerprints.items()},
            present={name: there[rows] for name, there in self.present.items()},
            texts=None if self.texts is None else self.texts.select(rows),
        )

    def rows_by_modality(self) -> dict[str, ModalityRows]:
        """Give the numbers of each modality, to be taken in blocks."""
        found = {}
        for name, values in self.features.items():
            timeline, times = self.sequences.get(name), None
            if timeline is None:
                found[name] = ModalityRows(FeatureRows.of(values))
                continue
            if timeline.times is not None:
                times = FeatureRows.of(timeline.times)
            found[name] = ModalityRows(FeatureRows.of(values), FeatureRows.of(timeline.values), timeline.offsets, times)
        return found

    def notes(self) -> tuple[str, ...]:
        """Say what people should know of where the features come from: what readers did, networks without training."""
        found = [note for origin in self.provenance.values() for note in texts(origin.get("notes"))]
        drawn = [modality for modality, origin in self.provenance.items() if origin.get("extractor") == DRAWN]
        if drawn:
            found.append(f"{' and '.join(drawn)}: drawn numbers ({DRAWN}), no features of recordings")
        for modality, origin in self.provenance.items():
            if "untrained" in (origin.get("weights"), inner(origin, "parameters", "weights")):
                found.append(f"{modality}: made by an untrained network (random weights)")
        for modality in self.present:
            lacking = int((~self.has(modality)).sum())
            if lacking:
                found.append(f"{lacking} of {len(self.ids)} clips have no {modality}: masked, not left out")
        if self.texts is not None:
            several = int((np.bincount(self.texts.rows) > 1).sum())
            found.append(f"{several} of {len(self.ids)} clips have several texts, {len(self.texts.rows)} in all")
        return tuple(dict.fromkeys(found))
