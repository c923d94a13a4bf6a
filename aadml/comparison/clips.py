"""Clips, before the encoder, and the three splits of a data set."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.arrays import is_whole, to_codes, to_flags, to_rows
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Matrix, Modality, check_features, check_present
from aadml.comparison.relevance import Relevance, relevance_of
from aadml.comparison.stored_rows import StoredRows
from aadml.feature_extraction.feature_file import UNLABELLED, Texts
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject


@dataclass(frozen=True)
class Clips:
    """A set of n clips: features per modality, what they show, who they are. Checked here, trusted everywhere else.

    Attributes:
        features: modality -> (n, d) finite float tensor, the same as `StoredRows`, or a `Source` of n items.
        labels: (n,) int64 in 0..C-1, UNLABELLED where a clip has no class. Of a clip with several, the first.
        ids: n names: what makes identical.
        class_names: C names, in the order of the labels; none where there are no classes.
        all_labels: (n, C) bool, all classes of each clip; None where none has several.
        relevance: what makes relevant; None decides it by the data: a shared class, the class, or the own partner
            where there are no classes.
        present: modality -> (n,) bool, whether a clip has it; a modality that all have is left out. What stands in the
            features of a clip that lacks it is not looked at.
        texts: all texts, where clips have several and `aadml.data.captions.several_texts` has not laid them out yet.
        drawn_by: n names; of the rows that share one, an epoch of training takes one. None where it takes all.
    """

    IN_WORDS: ClassVar[str] = "Clips (of arrays: aadml.Clips.of(labels, audio=..., visual=...))"
    """How messages of `ground.calls` name it."""

    features: Mapping[Modality, Features]
    labels: Tensor
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    all_labels: Tensor | None = None
    relevance: Relevance | None = None
    present: Mapping[Modality, Tensor] = field(default_factory=dict)
    texts: Texts | None = None
    drawn_by: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        labels: Sequence[Any] | NDArray[Any] | Tensor | None,
        *,
        ids: Sequence[str | int] | NDArray[Any] | Tensor | None = None,
        present: Mapping[str, Sequence[bool] | NDArray[np.bool_] | Tensor] | None = None,
        **features: Any,
    ) -> "Clips":
        """Make clips of arrays as people have them.

        Args:
            labels: n class names, or n whole numbers, whose values become the names; None for clips without classes,
                and None in a list in place of the label that a clip does not have.
            ids: n names or whole numbers; by default the row numbers.
            present: by modality, n booleans: whether a clip has it. The features of one that lacks it do not matter.
            features: by modality: (n, d), a NumPy array or tensor of any float or integer type, or lists.

        Raises:
            InputError: no numbers, NaN, unequal counts, or no such modality.

        Example:
            >>> clips = aadml.Clips.of(["dog", "cat", "dog"], audio=[[0, 1], [1, 0], [0, 2]], visual=[[1], [2], [1]])
            >>> clips.class_names, clips.labels.tolist(), clips.modalities
            (('cat', 'dog'), [1, 0, 1], ('audio', 'visual'))
        """
        if present is not None and not isinstance(present, Mapping):
            raise InputError(f"present: {type(present).__name__} given; {{modality: n booleans}} is wanted")
        masks = {name: to_flags(there, f"present: {name}") for name, there in (present or {}).items()}
        matrices = {name: to_rows(values, name)[0] for name, values in features.items()}
        if labels is None:
            labels = [None] * len(next(iter(matrices.values()), ()))
        codes, names = to_codes(labels, "labels")
        return cls(matrices, torch.from_numpy(codes), _names(ids, len(codes)), names, present=masks)

    def __post_init__(self) -> None:
        count = len(self.ids)
        if self.labels.shape != (count,) or self.labels.dtype != torch.int64:
            raise InputError(
                f"clips: {count} ids but labels of shape {tuple(self.labels.shape)} and {self.labels.dtype}"
            )
        if count and not self._in_range():
            most = len(self.class_names) - 1
            raise InputError(f"clips: labels must lie in 0..{most}, {UNLABELLED} where there is none")
        if self.all_labels is not None and self.all_labels.shape != (count, len(self.class_names)):
            raise InputError(f"clips: all_labels must be ({count}, {len(self.class_names)})")
        for modality, features in self.features.items():
            check_features(modality, features, count)
        for modality, there in self.present.items():
            if modality not in self.features:
                raise InputError(f"present: there are no {modality} features; there are {', '.join(self.features)}")
            check_present(modality, there, count)

    def _in_range(self) -> bool:
        return int(self.labels.min()) >= UNLABELLED and int(self.labels.max()) < len(self.class_names)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def per_epoch(self) -> int:
        """Count the rows that an epoch of training takes."""
        return len(self) if self.drawn_by is None else len(set(self.drawn_by))

    @property
    def one_label_each(self) -> bool:
        """Tell whether no clip is of several classes, and there are classes: what methods that learn classes need."""
        return bool(self.class_names) and self.all_labels is None

    @property
    def unlabelled(self) -> int:
        """Count the clips without a class."""
        return int((self.labels == UNLABELLED).sum())

    @property
    def relevant(self) -> Relevance:
        """Give what makes relevant: the rule that was set, or what the data decide."""
        return self.relevance or relevance_of(self)

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Name the modalities present."""
        return tuple(self.features)

    def dimension(self, modality: Modality) -> int:
        """Give the number of feature dimensions d of a modality of vectors."""
        return self.vectors(modality).shape[1]

    def vectors(self, modality: Modality) -> Matrix:
        """Return the features (n, d) of one modality, in memory or not.

        Raises:
            InputError: the modality is absent, or is a source made batch by batch.
        """
        features = self[modality]
        if not isinstance(features, Matrix):
            raise InputError(f"clips: the {modality} features are made batch by batch; this method needs vectors")
        return features

    def matrix(self, modality: Modality) -> Tensor:
        """Return the features (n, d) of one modality in memory; those that are not there yet are brought there.

        Raises:
            InputError: the modality is absent, or is a source made batch by batch.
        """
        features = self.vectors(modality)
        return features if isinstance(features, Tensor) else features.tensor

    @property
    def matrices(self) -> Mapping[Modality, Tensor]:
        """Give the features of each modality in memory, brought there once they are asked for."""
        return _Matrices(self)

    def __getitem__(self, modality: Modality) -> Features:
        if modality not in self.features:
            raise InputError(f"clips: no {modality} features here; there are {', '.join(self.features)}")
        return self.features[modality]

    def keeping(self, modalities: Collection[Modality]) -> "Clips":
        """Return the same clips with some of their modalities."""
        features = {m: values for m, values in self.features.items() if m in modalities}
        present = {m: own for m, own in self.present.items() if m in modalities}
        return replace(self, features=features, present=present, texts=self.texts if "text" in modalities else None)

    def rows(self, modality: Modality) -> Tensor:
        """Number the clips (m,) that have a modality, in order."""
        there = self.present.get(modality)
        return torch.arange(len(self)) if there is None else there.nonzero()[:, 0]

    @property
    def whole(self) -> Tensor:
        """Number the clips (m,) that have all modalities, in order."""
        there = torch.ones(len(self), dtype=torch.bool)
        for modality in self.modalities:
            there &= self.present.get(modality, there)
        return there.nonzero()[:, 0]

    def in_memory(self) -> "Clips":
        """Return the same clips, the features that are vectors in memory."""
        features = {m: f.tensor if isinstance(f, StoredRows) else f for m, f in self.features.items()}
        return replace(self, features=features)

    def select(self, index: Tensor) -> "Clips":
        """Return the clips `index` (m,), in that order."""
        features = {m: f[index] if isinstance(f, Tensor) else f.select(index) for m, f in self.features.items()}
        return replace(
            self,
            features=features,
            labels=self.labels[index],
            ids=tuple(self.ids[i] for i in index.tolist()),
            all_labels=None if self.all_labels is None else self.all_labels[index],
            present={m: there[index] for m, there in self.present.items()},
            texts=None if self.texts is None else self.texts.select(index.numpy()),
            drawn_by=None if self.drawn_by is None else tuple(self.drawn_by[i] for i in index.tolist()),
        )

    def embedded(
        self,
        vectors: Mapping[Modality, Tensor],
        similarity: str = "cosine",
        *,
        once: tuple[Modality, ...] = (),
        rows: Mapping[Modality, Tensor] | None = None,
    ) -> Embeddings:
        """Give the embeddings of these clips, to which the same is relevant; args as of `Embeddings`."""
        return Embeddings(
            vectors, self.labels, self.ids, similarity, self.class_names, once, rows or {},
            self.all_labels, self.relevance, {m: own for m, own in self.present.items() if m in vectors},
        )  # fmt: skip


def _names(ids: object, count: int) -> tuple[str, ...]:
    """Give names of clips as text, by default the row numbers."""
    listed = ids.tolist() if isinstance(ids, np.ndarray | Tensor) else ids
    if listed is None or (isinstance(listed, Sequence) and not len(listed)):
        return tuple(map(str, range(count)))
    known = not isinstance(listed, str) and isinstance(listed, Iterable)
    names = list(cast(Iterable[object], listed)) if known else [listed]
    wrong = [one for one in names if not isinstance(one, str) and not is_whole(one)]
    if wrong or not known:
        raise InputError(f"ids: {type((wrong or names)[0]).__name__} given; n names or n whole numbers are wanted")
    return tuple(map(str, names))


class _Matrices(Mapping[Modality, Tensor]):
    """Modality -> (n, d), brought into memory when it is looked up."""

    def __init__(self, clips: Clips) -> None:
        self._clips = clips

    def __getitem__(self, modality: Modality) -> Tensor:
        return self._clips.matrix(modality)

    def __iter__(self) -> Iterator[Modality]:
        return iter(self._clips.modalities)

    def __len__(self) -> int:
        return len(self._clips.modalities)


@dataclass(frozen=True)
class Splits:
    """The three disjoint parts of a data set: fit on `train`, choose on `valid`, report on `test`.

    Attributes:
        train: clips to fit on.
        valid: clips to choose epochs and options on.
        test: clips that are scored once.
        name: where the data came from, for people.
        notes: what was done to get the splits (a validation split made, clips dropped), one sentence each.
        provenance: modality -> what made its features, as the feature file says; empty where nothing is known.
    """

    train: Clips
    valid: Clips
    test: Clips
    name: str = ""
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, JsonObject] = field(default_factory=dict)

    def having(self, split: str, clips: Clips) -> "Splits":
        """Return the same data with other clips in one part."""
        part = {name: clips if name == split else self[name] for name in ("train", "valid", "test")}
        return replace(self, train=part["train"], valid=part["valid"], test=part["test"])

    def in_memory(self) -> "Splits":
        """Return the same data, the features that are vectors in memory."""
        train, valid, test = (part.in_memory() for part in (self.train, self.valid, self.test))
        return replace(self, train=train, valid=valid, test=test)

    def __getitem__(self, split: str) -> Clips:
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        if split not in parts:
            raise InputError(f"no split '{split}'; there are {', '.join(parts)}")
        return parts[split]
