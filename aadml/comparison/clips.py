"""Clips as inputs of encoders, and the three splits of a data set."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, cast, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.arrays import is_whole, to_codes, to_flags, to_rows
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Matrix, Modality, check_features, check_items, check_mapping
from aadml.comparison.relevance import Relevance, relevance_of
from aadml.comparison.stored_rows import StoredRows
from aadml.feature_extraction.feature_file.content import UNLABELLED, Texts
from aadml.feature_extraction.ground.argument_types import checked_call
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject


@dataclass(frozen=True, repr=False)
class Clips:
    """Set of n clips: features per modality, labels and ids, checked when the set is built.

    `clips["audio"]` returns the features of a modality, and `clips[:5]` and `clips[[0, 3]]` return some of the
    clips.

    Attributes:
        features: modality -> finite floats (n, d) as a tensor or as `StoredRows`, or a `Source` of n items.
        labels: (n,) int64 in 0..C-1, the first class of each clip; UNLABELLED for a clip without a class.
        ids: n names; equal names mean the same clip.
        class_names: C names, in the order of the labels; empty without classes.
        all_labels: (n, C) bool, all classes of each clip; None if no clip has several classes.
        relevance: rule of relevance. None selects a rule by the data: a shared class for clips with `all_labels`,
            the query's own partner for clips without any class, and otherwise the class.
        present: modality -> (n,) bool, False for a clip without the modality. Features of such a clip in the
            modality are not used. A modality that all clips have may be omitted.
        texts: all texts of clips with several texts, until `aadml.data.captions.several_texts` converts them to
            rows.
        drawn_by: n names; each epoch of training draws one of the rows that share a name. None uses all rows.

    Raises:
        InputError: shapes, types or numbers of rows that do not match, a label out of range, features that are not
            finite, an invalid name of a modality, or a modality in `present` but not in `features`.
    """

    IN_WORDS: ClassVar[str] = "Clips (of arrays: aadml.Clips.of(labels, audio=..., visual=...))"
    """Name of the type in messages of `ground.argument_types`."""

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
        """Build clips from arrays.

        Args:
            labels: n class names, or n whole numbers, which become the names. The number -1, an empty name, and None in
                a list mark a clip without a label. None instead of a list means that no clip has a class.
            ids: n names or whole numbers; by default the row numbers.
            present: modality -> n booleans, False where a clip lacks the modality.
            features: modality -> (n, d), a NumPy array or tensor of any float or integer type, or lists.

        Raises:
            InputError: an argument of another type or shape, features that are not finite, different numbers of rows,
                an invalid name of a modality, or a modality in `present` but not in `features`.

        Example:
            >>> clips = aadml.Clips.of(["dog", "cat", "dog"], audio=[[0, 1], [1, 0], [0, 2]], visual=[[1], [2], [1]])
            >>> clips.class_names, clips.labels.tolist(), clips.modalities
            (('cat', 'dog'), [1, 0, 1], ('audio', 'visual'))
        """
        if present is not None and not isinstance(present, Mapping):
            raise InputError(f"present has type {type(present).__name__}; pass {{modality: n booleans}}")
        masks = {name: to_flags(flags, f"present: {name}") for name, flags in (present or {}).items()}
        matrices = {name: to_rows(values, name, is_matrix=True)[0] for name, values in features.items()}
        counts = {name: len(matrix) for name, matrix in matrices.items()}
        codes, class_names = to_codes([None] * next(iter(counts.values()), 0) if labels is None else labels, "labels")
        names = _names(ids, len(codes))
        counts |= {"labels": len(codes)} if labels is not None else {}
        _check_counts(counts | ({"ids": len(names)} if ids is not None else {}))
        return cls(matrices, torch.from_numpy(codes), names, class_names, present=masks)

    def __post_init__(self) -> None:
        count = len(self.ids)
        check_items("clips", self, len(self.class_names), self.present)
        if count and not self._in_range():
            raise InputError(
                f"clips: labels range from {int(self.labels.min())} to {int(self.labels.max())} for "
                f"{len(self.class_names)} class names; pass the position of a class name for each clip, or "
                f"{UNLABELLED} for a clip without a label"
            )
        check_mapping("clips: features", self.features)
        for modality, features in self.features.items():
            check_features(modality, features, count)
        for modality in self.present:
            if modality not in self.features:
                raise InputError(
                    f"present: the clips have no {modality} features; choose from {', '.join(self.features)}"
                )

    def _in_range(self) -> bool:
        return int(self.labels.min()) >= UNLABELLED and int(self.labels.max()) < len(self.class_names)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        classes = f"{len(self.class_names)} classes" if self.class_names else "no classes"
        return f"Clips({len(self)} clips, {classes}, {', '.join(map(self._width, self.modalities)) or 'no features'})"

    def _width(self, modality: Modality) -> str:
        features = self.features[modality]
        missing = len(self) - len(self.rows(modality))
        width = f"{modality} {features.shape[1]}-d" if isinstance(features, Matrix) else f"{modality} media"
        return width + (f" ({missing} missing)" if missing else "")

    @property
    def clip_names(self) -> tuple[str, ...]:
        """The ids."""
        return self.ids

    @property
    def per_epoch(self) -> int:
        """Number of rows in an epoch of training."""
        return len(self) if self.drawn_by is None else len(set(self.drawn_by))

    @property
    def one_label_each(self) -> bool:
        """Whether some clip has a class, and no clip has several classes."""
        return self.all_labels is None and self.unlabelled < len(self)

    @property
    def unlabelled(self) -> int:
        """Number of clips without a class."""
        return int((self.labels == UNLABELLED).sum())

    @property
    def relevant(self) -> Relevance:
        """Rule of relevance: the rule that was set, or else the rule selected by the data."""
        return self.relevance or relevance_of(self)

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Names of the modalities."""
        return tuple(self.features)

    @checked_call
    def dimension(self, modality: Modality) -> int:
        """Return the number of feature dimensions d of a modality of vectors; errors are those of `vectors`."""
        return self.vectors(modality).shape[1]

    @checked_call
    def vectors(self, modality: Modality) -> Matrix:
        """Return the features (n, d) of one modality, in memory or on disk.

        Raises:
            InputError: the modality is absent, or its features are computed batch by batch.
        """
        features = self[modality]
        if not isinstance(features, Matrix):
            raise InputError(
                f"clips: the {modality} features are computed batch by batch, but vectors are needed; extract features "
                "(`aadml extract`)"
            )
        return features

    @checked_call
    def matrix(self, modality: Modality) -> Tensor:
        """Return the features (n, d) of one modality, loaded into memory.

        Raises:
            InputError: the modality is absent, or its features are computed batch by batch.
        """
        features = self.vectors(modality)
        return features if isinstance(features, Tensor) else features.tensor

    @property
    def matrices(self) -> Mapping[Modality, Tensor]:
        """Features (n, d) of each modality, loaded into memory on access."""
        return _Matrices(self)

    @overload
    def __getitem__(self, key: Modality) -> Features: ...

    @overload
    def __getitem__(self, key: slice | Sequence[int] | NDArray[Any] | Tensor) -> "Clips": ...

    def __getitem__(self, key: Any) -> "Features | Clips":
        """Return the features of a modality, or the clips that a slice, row numbers or a mask (n,) selects.

        Raises:
            InputError: the modality is absent, or the key does not select rows of these clips.
        """
        if isinstance(key, slice | list | tuple | np.ndarray | Tensor):
            try:
                rows = torch.arange(len(self))[key if isinstance(key, slice) else _rows_or_mask(key)]
            except (IndexError, RuntimeError, TypeError, ValueError) as error:
                raise InputError(
                    f"clips: the key does not select rows ({error}); "
                    f"pass rows in 0..{len(self) - 1}, or a mask of {len(self)} booleans"
                ) from error
            return self.select(rows)
        if not isinstance(key, str) or key not in self.features:
            raise InputError(
                f"clips: there are no features '{key}'; choose from {', '.join(self.features)}, or select rows with "
                "clips[[ROW]]"
            )
        return self.features[key]

    @checked_call
    def keeping(self, modalities: Collection[Modality]) -> "Clips":
        """Return the same clips with only the features of `modalities`; names of absent modalities are ignored."""
        features = {m: values for m, values in self.features.items() if m in modalities}
        present = {m: flags for m, flags in self.present.items() if m in modalities}
        return replace(self, features=features, present=present, texts=self.texts if "text" in modalities else None)

    @checked_call
    def rows(self, modality: Modality) -> Tensor:
        """Return the row numbers (m,) of the clips that have a modality, in order."""
        flags = self.present.get(modality)
        return torch.arange(len(self)) if flags is None else flags.nonzero()[:, 0]

    @property
    def whole(self) -> Tensor:
        """Row numbers (m,) of the clips that have all modalities, in order."""
        flags = torch.ones(len(self), dtype=torch.bool)
        for modality in self.modalities:
            flags &= self.present.get(modality, flags)
        return flags.nonzero()[:, 0]

    @cached_property
    def first_rows(self) -> Tensor | None:
        """Row (n,) where the id of each row first occurs; None if no id is repeated."""
        first: dict[str, int] = {}
        rows = [first.setdefault(name, row) for row, name in enumerate(self.ids)]
        return None if len(first) == len(rows) else torch.tensor(rows)

    def in_memory(self) -> "Clips":
        """Return the same clips with all vectors loaded into memory."""
        features = {m: f.tensor if isinstance(f, StoredRows) else f for m, f in self.features.items()}
        return replace(self, features=features)

    @checked_call
    def select(self, index: Tensor | NDArray[Any] | Sequence[int]) -> "Clips":
        """Return the clips with the row numbers `index` (m,), in that order.

        Raises:
            InputError: `index` is not a vector of row numbers of these clips.
        """
        if not isinstance(index, Tensor):
            rows = np.asarray(index)
            if rows.size and rows.dtype.kind not in "iu":
                raise InputError(f"select: index has type {rows.dtype}; pass row numbers, int64 (m,)")
            index = torch.from_numpy(rows.astype(np.int64))
        if index.ndim != 1 or index.dtype not in (torch.int64, torch.int32):
            raise InputError(
                f"select: index has type {index.dtype} and shape {tuple(index.shape)}; pass row numbers, int64 (m,)"
            )
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < len(self):
            raise InputError(
                f"select: index ranges from {int(index.min())} to {int(index.max())}; pass rows in 0..{len(self) - 1}"
            )
        features = {m: f[index] if isinstance(f, Tensor) else f.select(index) for m, f in self.features.items()}
        return replace(
            self,
            features=features,
            labels=self.labels[index],
            ids=tuple(self.ids[i] for i in index.tolist()),
            all_labels=None if self.all_labels is None else self.all_labels[index],
            present={m: flags[index] for m, flags in self.present.items()},
            texts=None if self.texts is None else self.texts.select(index.numpy()),
            drawn_by=None if self.drawn_by is None else tuple(self.drawn_by[i] for i in index.tolist()),
        )

    @checked_call
    def embedded(
        self,
        vectors: Mapping[Modality, Tensor],
        similarity: str = "cosine",
        *,
        once: tuple[Modality, ...] = (),
        rows: Mapping[Modality, Tensor] | None = None,
    ) -> Embeddings:
        """Return `vectors` as embeddings of these clips.

        The embeddings keep the labels, ids, classes and rule of relevance of the clips. See `Embeddings` for the
        arguments and errors.
        """
        return Embeddings(
            vectors, self.labels, self.ids, similarity, self.class_names, once, {} if rows is None else rows,
            self.all_labels, self.relevance, {m: flags for m, flags in self.present.items() if m in vectors},
        )  # fmt: skip


def numbered(clips: Clips, names: tuple[str, ...]) -> Clips:
    """Return clips with classes numbered as in `names`.

    Clips without class names are returned unchanged, and so are clips with a class that `names` lacks.
    """
    classes = clips.class_names
    if not classes or classes == names or not set(classes) <= set(names):
        return clips
    codes = torch.tensor([names.index(name) for name in classes])
    labels, marked = torch.cat([codes, torch.tensor([UNLABELLED])])[clips.labels], clips.all_labels
    if marked is not None:
        marked = torch.zeros(len(clips), len(names), dtype=torch.bool).index_copy(1, codes, marked)
    return replace(clips, labels=labels, class_names=names, all_labels=marked)


def _rows_or_mask(key: Sequence[int] | NDArray[Any] | Tensor) -> Tensor:
    """Return row numbers (m,) of any width as int64, and a mask (n,) as booleans; an empty list has no rows."""
    array = np.asarray(key.detach().cpu() if isinstance(key, Tensor) else key)
    is_rows = array.dtype.kind in "iu" or (not array.size and array.dtype.kind != "b")
    return torch.from_numpy(array.astype(np.int64 if is_rows else array.dtype))


def _check_counts(counts: Mapping[str, int]) -> None:
    """Raise InputError unless all arguments have the same number of rows.

    Args:
        counts: name of an argument -> number of its rows.
    """
    for name, count in counts.items():
        if count != (expected := next(iter(counts.values()))):
            raise InputError(
                f"clips: there are {expected} rows of {next(iter(counts))}, but {count} rows of {name}; pass one row "
                "per clip"
            )


def _names(ids: object, count: int) -> tuple[str, ...]:
    """Return `ids` as strings; without ids, return the row numbers 0..count-1 as strings."""
    listed = ids.tolist() if isinstance(ids, np.ndarray | Tensor) else ids
    if listed is None or (isinstance(listed, Sequence) and not len(listed)):
        return tuple(map(str, range(count)))
    known = not isinstance(listed, str) and isinstance(listed, Iterable)
    names = list(cast(Iterable[object], listed)) if known else [listed]
    wrong = [name for name in names if not isinstance(name, str) and not is_whole(name)]
    if wrong or not known:
        raise InputError(f"ids have type {type((wrong or names)[0]).__name__}; pass n names or n whole numbers")
    return tuple(map(str, names))


class _Matrices(Mapping[Modality, Tensor]):
    """Features (n, d) by modality, loaded into memory on access."""

    def __init__(self, clips: Clips) -> None:
        self._clips = clips

    def __getitem__(self, modality: Modality) -> Tensor:
        return self._clips.matrix(modality)

    def __iter__(self) -> Iterator[Modality]:
        return iter(self._clips.modalities)

    def __len__(self) -> int:
        return len(self._clips.modalities)


@dataclass(frozen=True, repr=False)
class Splits:
    """Three disjoint parts of a data set: `train` to fit on, `valid` to select on, `test` to report on.

    Attributes:
        train: clips to fit on.
        valid: clips to select epochs and options on. If `valid` is omitted, `aadml.fit` sets some of the training
            clips aside, as for a file without validation clips. With empty clips, the last epoch is kept.
        test: clips to score once; by default none.
        name: source of the data, for messages.
        notes: steps that derived the splits (a drawn validation split, dropped clips), one sentence per step.
        provenance: modality -> origin of its features, as in the feature file; empty if unknown.
        clusters: id of a clip -> its cluster. For confidence intervals, clusters are resampled; None resamples
            clips.
        omits_valid: whether `valid` was omitted; copies keep this mark until they have validation clips.
    """

    train: Clips
    valid: Clips = None  # type: ignore[assignment]  # empty clips instead of None
    test: Clips = None  # type: ignore[assignment]
    name: str = ""
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, JsonObject] = field(default_factory=dict)
    clusters: Mapping[str, str] | None = None
    omits_valid: bool = field(default=False, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        omits_valid = self.valid is None or (self.omits_valid and not len(self.valid))
        object.__setattr__(self, "omits_valid", omits_valid)
        for split in ("valid", "test"):
            if getattr(self, split) is None:
                object.__setattr__(self, split, self.train.select(torch.arange(0)))

    @classmethod
    @checked_call
    def only_test(cls, clips: Clips) -> "Splits":
        """Return splits with all `clips` in the part `test`; `train` and `valid` are empty."""
        empty = clips.select(torch.arange(0))
        return cls(empty, empty, clips)

    @checked_call
    def having(self, split: str, clips: Clips) -> "Splits":
        """Return the same splits with `clips` as the part `split` ("train", "valid" or "test").

        Raises:
            InputError: there is no such part.
        """
        if self[split] is clips:
            return self
        part = {name: clips if name == split else self[name] for name in ("train", "valid", "test")}
        return replace(self, train=part["train"], valid=part["valid"], test=part["test"])

    def in_memory(self) -> "Splits":
        """Return the same splits with all vectors loaded into memory."""
        train, valid, test = (part.in_memory() for part in (self.train, self.valid, self.test))
        return replace(self, train=train, valid=valid, test=test)

    def __repr__(self) -> str:
        return "\n".join(f"{name:<5}  {self[name]!r}" for name in ("train", "valid", "test"))

    def __getitem__(self, split: str) -> Clips:
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        if split not in parts:
            raise InputError(f"'{split}' is not a split; choose from {', '.join(parts)}")
        return parts[split]
