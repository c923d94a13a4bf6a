"""Content of a feature file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows
from aadml.feature_extraction.ground.json_values import JsonObject, inner, texts

FORMAT = "aadml-features"
UNLABELLED = -1
"""Label of a clip without a class, and of every clip in a file without class names."""
DRAWN = "synthetic"
"""Name of the extractor of features that are random numbers."""


@dataclass(frozen=True)
class Timeline:
    """Features over time of all clips, concatenated.

    Attributes:
        values: (total, d) float32; rows `offsets[i]` to `offsets[i + 1]` belong to clip i.
        offsets: (n + 1,) int64, not decreasing, from 0 to total.
        times: (total,) float64, start of each row, in seconds after the beginning of the clip's segment, or after
            the beginning of the recording for a clip without a segment. A row is valid until the start of the next
            row. None if the feature file has no times, as in version 1.
    """

    values: NDArray[np.float32]
    offsets: NDArray[np.int64]
    times: NDArray[np.float64] | None = None

    def rows_at(self, clip: int, seconds: Sequence[float] | NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the rows of a clip that are valid at the times `seconds`.

        Rows of two modalities are aligned by equal times. For the label of second s of AVE, use the time s + 0.5.

        Args:
            clip: number of the clip.
            seconds: (m,) times, in seconds after the beginning of the clip's segment, or after the beginning of the
                recording for a clip without a segment.

        Returns:
            (m,) rows of `values`; -1 for times before the first row. The last row is valid for all later times.

        Raises:
            ValueError: the sequence has no times.
        """
        if self.times is None:
            raise ValueError("this sequence has no times, as in feature files of version 1; extract the features again")
        start, stop = int(self.offsets[clip]), int(self.offsets[clip + 1])
        place = np.searchsorted(self.times[start:stop], np.asarray(seconds, dtype=np.float64) + 1e-9, side="right")
        return np.where(place > 0, start + place - 1, -1).astype(np.int64)

    def select(self, clips: NDArray[np.int64]) -> "Timeline":
        """Return the timeline of the clips with the numbers `clips` (m,), in that order."""
        starts, lengths = self.offsets[clips], np.diff(self.offsets)[clips]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Timeline(self.values[rows], offsets, None if self.times is None else self.times[rows])


@dataclass(frozen=True)
class Texts:
    """Texts of all clips, ordered by clip; a clip has any number of texts.

    Attributes:
        values: (m, d) float32.
        rows: (m,) int64, clip of each text, not decreasing.
    """

    values: NDArray[np.float32]
    rows: NDArray[np.int64]

    @classmethod
    def sorted(cls, values: NDArray[np.float32], rows: NDArray[np.int64]) -> "Texts":
        """Build `Texts` from values (m, d) and rows (m,) in any order; the texts of a clip keep their order."""
        order = np.argsort(rows, kind="stable")
        return cls(values[order], rows[order])

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Mask (m,) of the texts that are the first of their clip."""
        return np.diff(self.rows, prepend=-1) > 0

    def first_of_each(self, clips: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return the first text of each clip, as rows (n, d), and the mask (n,) of the clips with texts.

        The row of a clip without texts is zero.

        Args:
            clips: n, the number of clips.
        """
        values = np.zeros((clips, self.values.shape[1]), dtype=np.float32)
        values[self.rows[self.is_first]] = self.values[self.is_first]
        return values, np.isin(np.arange(clips), self.rows)

    def select(self, clips: NDArray[np.int64]) -> "Texts":
        """Return the texts of the clips with the numbers `clips` (k,), in that order."""
        starts, stops = (np.searchsorted(self.rows, clips, side=side) for side in ("left", "right"))
        places = [np.arange(start, stop) for start, stop in zip(starts, stops, strict=True)]
        selected = np.concatenate([np.empty(0, dtype=np.int64), *places])
        return Texts(self.values[selected], np.repeat(np.arange(len(clips)), stops - starts))


@dataclass(frozen=True)
class PendingFit:
    """Transformation that `merge` fits to the training clips of all shards.

    Attributes:
        name: kind of the transformation, "pca-whitening".
        dimension: number of components.
        eight_bit: whether the transformed values are quantized to 8 bits.
    """

    name: str
    dimension: int
    eight_bit: bool = False


@dataclass(frozen=True)
class JobPart:
    """Description of a part of a job, as stored in JSON in the feature file of the part.

    Attributes:
        index: number of the shard, from 0.
        count: number of shards. Shard i contains the rows i, i + count, i + 2 count ... of the manifest.
        total: number of rows of the manifest.
        manifest: fingerprint of the manifest.
        pending: by modality, the transformation that `merge` fits. Until then, features and sequences are not
            transformed.
        sequence: whether the merged file keeps features over time. A shard with a pending fit always keeps these
            features.
    """

    index: int
    count: int
    total: int
    manifest: str
    pending: Mapping[str, PendingFit] = field(default_factory=dict)
    sequence: bool = False


@dataclass(frozen=True, kw_only=True)
class Shard(JobPart):
    """Part of a sharded job in one feature file.

    Attributes:
        rows: (n,) int64, row of each clip in the manifest.
        failures: for each failed clip, its row in the manifest and its fields in the list of failures.
    """

    rows: NDArray[np.int64]
    failures: tuple[tuple[int, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class FeatureFile:
    """Content of a feature file; row i of every array with n rows belongs to clip i.

    Attributes:
        features: by modality, (n, d) float32, finite.
        labels: (n,) int64, positions in `class_names`: the first class of each clip, UNLABELLED for a clip without a
            class.
        ids: n names of clips.
        splits: split of each clip, `train`, `valid` or `test`.
        class_names: C names of classes.
        provenance: by modality, origin of the features (extractor, weights, parameters, versions) as JSON.
        columns: further columns of the manifest, n strings each.
        sequences: by modality, features over time, if they were kept.
        fitted: by modality, named arrays that were fitted to the training rows.
        shard: part of the job that the file contains; None for a job without shards.
        all_labels: (n, C) uint8, 1 for each class of a clip; None if no clip of the job has several classes.
        fingerprints: by modality, (n, 256) uint8 fingerprints, which identify clips after re-encoding; see
            `aadml.feature_extraction.media.fingerprints`. Older files and files of other programs have no fingerprints.
        present: by modality, (n,) bool, mask of the clips with the modality, for modalities that some clip lacks. The
            features of a clip without the modality are zeros, and its sequence is empty.
        texts: all texts, if some clip has several texts. The features of `text` are then those of the first text of
            each clip.
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
        """Return the mask (n,) of the clips that have a modality."""
        return self.present.get(modality, np.ones(len(self.ids), dtype=np.bool_))

    def rows(self, split: str) -> NDArray[np.int64]:
        """Return the row numbers (m,) of a split, in order."""
        return np.flatnonzero(np.asarray(self.splits) == split).astype(np.int64)

    def select(self, rows: NDArray[np.int64]) -> "FeatureFile":
        """Return the content for the clips with the numbers `rows` (m,), in that order, without the shard."""
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
            present={name: mask[rows] for name, mask in self.present.items()},
            texts=None if self.texts is None else self.texts.select(rows),
        )

    def rows_by_modality(self) -> dict[str, ModalityRows]:
        """Return features and sequences by modality, readable in blocks."""
        rows = {name: ModalityRows(FeatureRows.of(values)) for name, values in self.features.items()}
        for name in self.sequences.keys() & rows.keys():
            timeline = self.sequences[name]
            times = None if timeline.times is None else FeatureRows.of(timeline.times)
            rows[name] = ModalityRows(rows[name].pooled, FeatureRows.of(timeline.values), timeline.offsets, times)
        return rows

    def notes(self) -> tuple[str, ...]:
        """Return notes on the content, for the user.

        These are the notes in the provenance, and notes on random numbers, untrained networks, missing modalities and
        several texts.
        """
        notes = [note for origin in self.provenance.values() for note in texts(origin.get("notes"))]
        drawn = [modality for modality, origin in self.provenance.items() if origin.get("extractor") == DRAWN]
        if drawn:
            verb = "is" if len(drawn) == 1 else "are"
            notes.append(f"{' and '.join(drawn)} {verb} random numbers ({DRAWN}), not features of recordings")
        for modality, origin in self.provenance.items():
            if "untrained" in (origin.get("weights"), inner(origin, "parameters", "weights")):
                notes.append(f"{modality} was computed by an untrained network (random weights)")
        for modality in self.present:
            lacking = int((~self.has(modality)).sum())
            if lacking:
                notes.append(
                    f"{lacking} of {len(self.ids)} clips have no {modality}; these clips are masked, not left out"
                )
        if self.texts is not None:
            several = int((np.bincount(self.texts.rows) > 1).sum())
            notes.append(f"{several} of {len(self.ids)} clips have several texts, {len(self.texts.rows)} in all")
        return tuple(dict.fromkeys(notes))
