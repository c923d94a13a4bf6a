"""The model: what a training leaves, and all that is needed to embed one item of one modality at a time, anywhere."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.arrays import Array, ArrayLike, Media, paths_of, to_rows
from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Matrix, Modality
from aadml.feature_extraction.ground.argument_types import checked_call
from aadml.feature_extraction.ground.consent import is_trusting, named_in, trusting
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.methods.inputs import Scaling
from aadml.methods.method import Method
from aadml.model.card import card
from aadml.model.facts import Facts
from aadml.model.packing import FACTS, save_model
from aadml.retrieval import score_source


class TopK(NamedTuple):
    """The best gallery items of each query.

    Attributes:
        scores: (n, k), falling; (k,) for one query.
        indices: (n, k) or (k,), rows of the gallery; equal scores in the order of the gallery.
    """

    scores: Array
    indices: Array


@dataclass(frozen=True)
class Model:
    """A fitted method with the scaling of its inputs: raw features in, embeddings out.

    Made by `aadml.fit` and `aadml.load`. Everything that comes in as NumPy goes out as NumPy, tensors as tensors.

    Attributes:
        method: what embeds.
        scaling: what its inputs pass through first, fitted on the training clips.
        facts: what it is, what it was trained on, what it expects.
        evaluation: how it was scored, as in `evaluation.json`; None where it was not.
        audit: the verdict of its audit, one sentence; empty where there was none.
        folder: where it lies; None where it is in memory alone.
        trusted: whether it was made or loaded with consent to code that files name.
    """

    method: Method
    scaling: Scaling
    facts: Facts
    evaluation: JsonObject | None = None
    audit: str = ""
    folder: Path | None = None
    trusted: bool = field(default_factory=is_trusting)

    def __repr__(self) -> str:
        facts = self.facts
        inputs = ", ".join(f"{m} {d}-d" if d else m for m, d in facts.dimensions.items())
        scored = (
            "" if self.evaluation is None else f", {self.evaluation['split']} MAP {self.evaluation['map_mean']:.3f}"
        )
        return f"<Model {facts.label}: {inputs}, {len(facts.class_names)} classes, {facts.similarity}{scored}>"

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes it was trained on, in the order of the labels."""
        return self.facts.class_names

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Modalities that it embeds."""
        return self.facts.modalities

    def embed(self, **items: ArrayLike | Media) -> Any:
        """Embed items of one modality, or of several, each item alone.

        Args:
            items: by modality: features (n, d) or one row (d,), as NumPy array, tensor or lists; or the path of a media
                file, or several, where the model knows an extractor that is installed; captions as strings where the
                model reads words.

        Returns:
            (n, e) float32, or (e,) for one row, one path or one caption; with several modalities a dictionary of them.

        Raises:
            InputError: a modality or a width that the model does not know, NaN, or media that cannot be read.

        Example:
            >>> clips = aadml.read("synthetic:ave").test
            >>> model = aadml.fit("synthetic:ave", method="cca")
            >>> model.embed(audio=clips["audio"]).shape
            torch.Size([189, 10])
            >>> model.embed(audio=clips["audio"][0].numpy()).shape
            (10,)
            >>> model.embed(visual="clip.mp4").shape  # doctest: +SKIP
            (10,)
        """
        if not items:
            raise InputError(f"embed: nothing given; name a modality: {', '.join(self.modalities)}")
        embedded = {name: self._embedded(name, values) for name, values in items.items()}
        return next(iter(embedded.values())) if len(embedded) == 1 else embedded

    def similarity(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Compare embeddings as every evaluation of this model does; larger is more alike.

        Args:
            a: (n, e) or (e,).
            b: (m, e) or (e,).

        Returns:
            (n, m); a side given as one row has no axis.
        """
        (queries, back), (gallery, _) = to_rows(a, "a"), to_rows(b, "b")
        scores = torch.from_numpy(np.asarray(self._scores(queries, gallery)))
        return back(scores[:, 0] if np.ndim(b) == 1 else scores)

    @checked_call
    def top_k(self, queries: ArrayLike, gallery: ArrayLike, *, k: int = 10) -> TopK:
        """Find the k best gallery items of each query, by exact search.

        Args:
            queries: embeddings (n, e) or (e,).
            gallery: embeddings (m, e).
            k: how many; at most m.

        Raises:
            InputError: k outside 1..m.

        Example:
            >>> model = aadml.fit("synthetic:ave", method="cca")
            >>> gallery = model.embed(visual=aadml.read("synthetic:ave").test["visual"].numpy())
            >>> model.top_k(gallery[7], gallery, k=3).indices[0]  # itself
            np.int64(7)
        """
        (rows, back), (items, _) = to_rows(queries, "queries"), to_rows(gallery, "gallery")
        if not 1 <= k <= len(items):
            raise InputError(f"k: {k} given; the gallery holds {len(items)} items, so 1 to {len(items)} are possible")
        scores = self._scores(rows, items)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        found = np.take_along_axis(scores, best, axis=1)
        return TopK(back(torch.from_numpy(found)), back(torch.from_numpy(best)))

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed every modality of `clips`, one at a time."""
        for modality, features in clips.features.items():
            if isinstance(features, Matrix):
                self._check_width(features, self._known(modality))
        return self.method.embed_clips(self.scaling.clips(clips))

    def with_scaling(self, scaling: Scaling) -> "Model":
        """Return the same method behind another scaling."""
        return replace(self, scaling=scaling)

    def card(self) -> str:
        """Write the card: what the model is, what it was trained on, how it was scored (Markdown)."""
        return card(self.facts, self.evaluation, self.audit)

    @checked_call
    def save(self, folder: str | Path) -> Path:
        """Save the model into a folder of its own: `model.safetensors`, `model.json` and a card, `README.md`.

        The folder needs nothing else: it loads offline, on another machine, without the training data.

        Returns:
            The folder.

        Raises:
            InputError: the folder cannot be written, or holds a model already.
        """
        return save_model(
            self.method, self.scaling, self.facts, Path(folder), evaluation=self.evaluation, audit=self.audit
        )

    def _embedded(self, name: str, values: ArrayLike | Media) -> Array:
        modality = self._known(name)
        named = paths_of(values)
        if named is not None:
            from aadml.model.media import media_features

            texts, alone = named
            with trusting(self.trusted), named_in(self.folder / FACTS if self.folder else ""):
                features = media_features(self.facts, modality, texts)
            found = self.embed_features(features, modality)
            return (found[0] if alone else found).numpy()
        rows, back = to_rows(values, name)
        self._check_width(rows, modality)
        return back(self.embed_features(rows, modality))

    def embed_features(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality (n, d) -> (n, e) float32 on the CPU, each alone; checked by the caller."""
        return self.method.embed_all(self.scaling.features(features, modality), modality)

    def _scores(self, queries: Tensor, gallery: Tensor) -> Any:
        return score_source(queries, gallery, self.method.similarity).block(0, len(queries))

    def _known(self, name: str) -> Modality:
        for modality in self.modalities:
            if modality == name:
                return modality
        raise InputError(f"the model knows no modality '{name}'; it embeds {', '.join(self.modalities)}")

    def _check_width(self, features: Matrix, modality: Modality) -> None:
        wanted = self.facts.dimensions[modality]
        if not wanted:
            what = {"text": "captions", "audio": "the paths of sound files"}.get(modality, "the paths of videos")
            raise InputError(f"{modality}: features given, but this model reads {what}")
        if features.shape[1] != wanted:
            raise InputError(f"{modality}: {features.shape[1]} dimensions given; the model was trained on {wanted}")
