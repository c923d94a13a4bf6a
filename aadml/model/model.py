"""Model: the result of training, which embeds each item independently of other items and modalities."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.arrays import Array, ArrayLike, Media, paths_of, require_finite_embeddings, to_rows
from aadml.comparison.clips import Clips, numbered
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Matrix, Modality
from aadml.feature_extraction.ground.argument_types import checked_call
from aadml.feature_extraction.ground.atomic import write_bytes
from aadml.feature_extraction.ground.checksummed_json import FileSum
from aadml.feature_extraction.ground.consent import is_trusting, named_in, trusting
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.methods.inputs import Scaling, fit_scaling
from aadml.methods.method import Method
from aadml.methods.training.session import Checkpoint, Record
from aadml.model.card import card
from aadml.model.curves import curves_figure
from aadml.model.export import ExportedHead, export_heads
from aadml.model.facts import Facts
from aadml.model.mteb_model import MtebModel
from aadml.model.packing import CARD, FACTS, WEIGHTS, ModelRecord, pack_tensors
from aadml.model.sharing import push
from aadml.retrieval.exact_search import Gallery
from aadml.retrieval.frame_word import FRAME_WORD
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.scores import require_comparable, score_source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TopK(NamedTuple):
    """Best gallery items of each query.

    Attributes:
        scores: similarities in descending order, (n, k); (k,) for `queries` (e,).
        indices: rows of the gallery, with the shape of `scores`; items with equal scores are in the order of the
            gallery.
    """

    scores: Array
    indices: Array


@dataclass(frozen=True)
class Model:
    """Fitted method and the scaling of its inputs. A model maps raw features or media to embeddings.

    `aadml.fit` and `aadml.load` return models. `embed` returns a tensor for a tensor and a NumPy array for other
    input. `similarity` and `top_k` return tensors if their first argument is a tensor, and otherwise NumPy arrays.

    Attributes:
        method: the fitted method.
        scaling: scaling of the inputs, fitted on the training clips.
        facts: method, training data and expected features.
        record: evaluation of the model; None if the model was not scored.
        audit: verdict of the audit, in one sentence; empty if there was no audit.
        folder: folder of the model; None if the model is only in memory.
        trusted: whether the model was built or loaded with consent to import the code that files name.
        records: function that returns the training log, which is empty for a model loaded without its run.
    """

    method: Method
    scaling: Scaling
    facts: Facts
    record: EvaluationRecord | None = None
    audit: str = ""
    folder: Path | None = None
    trusted: bool = field(default_factory=is_trusting)
    records: Callable[[], Sequence[Record]] = tuple

    def __repr__(self) -> str:
        facts = self.facts
        inputs = ", ".join(f"{m} {d}-d" if d else m for m, d in facts.dimensions.items())
        scored = "" if self.record is None else f", {self.record.split} MAP {self.record.map_mean:.3f}"
        return f"<Model {facts.label}: {inputs}, {len(facts.class_names)} classes, {facts.similarity}{scored}>"

    @property
    def evaluation(self) -> JsonObject | None:
        """Content of `evaluation.json`; None if the model was not scored."""
        return None if self.record is None else self.record.to_json()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the training classes, in the order of the labels."""
        return self.facts.class_names

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Modalities that the model embeds."""
        return self.facts.modalities

    @checked_call
    def embed(self, **items: ArrayLike | Media) -> Any:
        """Embed items of one or several modalities, each item independently.

        Args:
            items: items by modality. Features are a matrix (n, d) or one row (d,), as NumPy array, tensor or lists.
                Media are one or several paths of files; texts are one or several strings. A model that reads
                features also accepts media and texts if its extractor is installed. A model that reads media or
                words does not accept features.

        Returns:
            (n, e) float32, or (e,) for one row, one path or one text. For several modalities, a dictionary of such
            arrays by modality.

        Raises:
            InputError: no items, a modality or width other than the model's, a NaN or infinite value or embedding,
                features for a model that reads media or words, or media whose features cannot be extracted.

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
            raise InputError(f"embed: no items were passed; pass items of {' or '.join(self.modalities)}")
        embedded = {name: self._embedded(name, values) for name, values in items.items()}
        return next(iter(embedded.values())) if len(embedded) == 1 else embedded

    def similarity(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Compute the similarity of embeddings, in the unit of the similarity; larger is more similar.

        Evaluations of this model rank by this similarity.

        Args:
            a: embeddings (n, e) or (e,).
            b: embeddings (m, e) or (e,).

        Returns:
            (n, m), without the axis of an argument that is a single row.

        Raises:
            InputError: an argument is not a row or a matrix of finite numbers, is empty, or has another dimension than
                the other argument.
        """
        (queries, back), (gallery, _) = to_rows(a, "a"), to_rows(b, "b")
        scores = torch.from_numpy(self._scores(queries, gallery))
        return back(scores[:, 0] if np.ndim(b) == 1 else scores)

    @checked_call
    def top_k(self, queries: ArrayLike, gallery: ArrayLike, *, k: int = 10) -> TopK:
        """Find the k best gallery items of each query by exact search.

        Args:
            queries: embeddings (n, e) or (e,).
            gallery: embeddings (m, e).
            k: number of items, at most m.

        Returns:
            Scores of the k best items, as by `similarity`, and their rows in the gallery, each (n, k), or (k,) for
            `queries` (e,). Items of equal score are ordered as in `aadml search`.

        Raises:
            InputError: k is outside 1..m, or an argument is not a row or a matrix of finite numbers, is empty, or
                has another dimension than the other argument.

        Example:
            >>> model = aadml.fit("synthetic:ave", method="cca")
            >>> gallery = model.embed(visual=aadml.read("synthetic:ave").test["visual"].numpy())
            >>> model.top_k(gallery[7], gallery, k=3).indices[0]  # itself
            np.int64(7)
        """
        (rows, back), (items, _) = to_rows(queries, "queries"), to_rows(gallery, "gallery")
        if not 1 <= k <= len(items):
            raise InputError(
                f"k is {k}, but the gallery has {len(items)} items; pass a whole number from 1 to {len(items)}"
            )
        if self.method.similarity == FRAME_WORD:
            scores = self._scores(rows, items)
            best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            highest = np.take_along_axis(scores, best, axis=1)
        else:
            require_comparable(rows, items, self.method.similarity)
            hits = Gallery(items, self.method.similarity).best_of_each(rows[:, None], k)
            best, highest = map(np.stack, zip(*hits, strict=True))
        return TopK(back(torch.from_numpy(highest).float()), back(torch.from_numpy(best)))

    @checked_call
    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed each modality of `clips` independently of the other modalities.

        Classes are numbered as in the model if the model has all of them.

        Raises:
            InputError: a modality that the model lacks, features of another width than the model's, or features for a
                model that reads media or words.
        """
        for modality, features in clips.features.items():
            if isinstance(features, Matrix):
                self._check_width(features, self._known(modality))
        return self.method.embed_clips(self.scaling.clips(numbered(clips, self.class_names)))

    @checked_call
    def rescaled(self, clips: Clips) -> "Model":
        """Return a model with the same method, without scores, and with the scaling of the inputs fitted on `clips`.

        The card and `facts.data.notes` state that the scaling was not fitted in training.

        Raises:
            InputError: no clip has features of one of the modalities.
        """
        note = "the scaling of the inputs was fitted on clips passed to Model.rescaled, not in training"
        data = replace(self.facts.data, notes=(*self.facts.data.notes, note))
        facts = replace(self.facts, data=data)
        return Model(self.method, fit_scaling(clips, facts.inputs), facts, trusted=self.trusted)

    def merged(self) -> "Model":
        """Return a model with the LoRA adapters added to the weights of the pretrained networks.

        The option `lora_rank` sets the rank of the adapters. The merged model computes the same embeddings up to
        rounding, and loads without the files of the pretrained networks.

        Raises:
            InputError: the model has no adapters.
        """
        from aadml.methods.towers.hub_input import merged  # imports media code

        method = merged(self.method)
        return replace(self, method=method, facts=replace(self.facts, architecture=method.architecture()), folder=None)

    def plot_curves(self) -> "Figure":
        """Draw losses and metrics over the epochs as a matplotlib figure; the selected epoch is marked, if any.

        Raises:
            InputError: the model has no training log by epoch, or matplotlib is not installed.
        """
        return curves_figure(self.records(), self.facts.selected_epoch)

    def card(self) -> str:
        """Return the card in Markdown: method, training data and scores."""
        return card(self.facts, self.record, self.audit)

    @checked_call
    def save(self, folder: str | Path) -> Path:
        """Write the model into a folder: `model.safetensors`, `model.json` and a card, `README.md`.

        The model can be loaded from the folder offline, on another machine, without the training data. A model with
        LoRA adapters also needs the files of the pretrained networks (see `merged`).

        Returns:
            The folder.

        Raises:
            InputError: the folder cannot be written, or already contains a file with one of these names.
        """
        place = Path(folder)
        files = self.pack()
        # `model.json` is written last: a folder without this file is not a model
        files = {WEIGHTS: files[WEIGHTS], CARD: self.card().encode(), FACTS: files[FACTS]}
        for name in files:
            if os.path.lexists(place / name):
                raise InputError(f"{place} already contains a {name}; choose another folder")
        for name, content in files.items():
            write_bytes(place / name, content)
        return place

    @checked_call
    def to_mteb(self, name: str = "local/aadml") -> MtebModel:
        """Return an encoder for `mteb.evaluate`; see docs/mteb.md.

        Args:
            name: name of the model in the results of mteb, in the form "organization/model".

        Raises:
            MissingExtraError: mteb is not installed.
        """
        return MtebModel(self, name)

    @checked_call
    def push_to_hub(self, name: str, *, license_id: str | None = None, private: bool | None = None) -> str:
        """Upload the model to the Hugging Face Hub.

        `aadml.load("hf:ORGANIZATION/NAME")` loads an uploaded model. The upload and the loading need `aadml[hub]`.
        The card has metadata for the hub: library, tags, license, and MAP with protocol, chance and interval.

        Args:
            name: "ORGANIZATION/NAME"; an existing model is replaced in a new commit.
            license_id: license of the weights, such as "apache-2.0"; None for no license in the card.
            private: whether a new repository is private; None for the default of the account.

        Returns:
            Address of the commit.

        Raises:
            InputError: an invalid name, or a hub that cannot be reached or refuses the name or access.
            MissingExtraError: huggingface_hub is not installed.
        """
        return push(self, name, license_id=license_id, private=private)

    @checked_call
    def pack(self, best: Checkpoint | None = None) -> dict[str, bytes]:
        """Return the content of the two files that define the model, with the names of the files as keys.

        Args:
            best: checkpoint with the facts to store in the weight file; None to store no facts.
        """
        weights = pack_tensors(Checkpoint(self.tensors(), best.facts if best else {}))
        record = ModelRecord(self.facts, FileSum.of(weights), self.audit, self.record)
        return {WEIGHTS: weights, FACTS: record.to_bytes()}

    @checked_call
    def export(self, path: str | Path) -> tuple[ExportedHead, ...]:
        """Write one file for each modality, for embedding raw features without aadml.

        A file maps features (n, d) to embeddings (n, e), both in float32, for any n. In ONNX, the input has the
        name of the modality, and the output is "embedding". The file includes the scaling. Its metadata list
        modality, classes, similarity, extractor and the SHA-256 of the weights. Each file is compared with the
        model on random features before the file is moved to its path.

        Args:
            path: path that ends in ".onnx", or in ".pt2" for `torch.export`. "head.onnx" becomes "head-audio.onnx"
                and "head-visual.onnx". The ending ".onnx" needs `aadml[onnx]`.

        Returns:
            The files, each with its largest difference from the model.

        Raises:
            InputError: a `path` with another ending, a model that reads media or words, a part that cannot be
                exported or differs from the model, or an existing output other than an exported model.
            MissingExtraError: the packages of `aadml[onnx]` are not installed.
        """
        return export_heads(self, Path(path))

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the method and of the scaling, by name."""
        method = {f"method.{key}": value for key, value in self.method.state().items()}
        return method | {f"inputs.{key}": value for key, value in self.scaling.state().items()}

    def _embedded(self, name: str, values: ArrayLike | Media) -> Array:
        modality = self._known(name)
        named = paths_of(values)
        if named is not None:
            from aadml.model.media import media_features

            texts, alone = named
            with trusting(self.trusted), named_in(self.folder / FACTS if self.folder else ""):
                features = media_features(self.facts, modality, texts)
            embedded = require_finite_embeddings(self.embed_features(features, modality), modality, texts)
            return (embedded[0] if alone else embedded).numpy()
        rows, back = to_rows(values, name)
        self._check_width(rows, modality)
        embedded = self.embed_features(rows, modality)
        return back(require_finite_embeddings(embedded, modality, [f"row {n}" for n in range(len(rows))]))

    def embed_features(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality without checks, each item independently.

        Args:
            features: raw features (n, d), or n media or texts if the model reads media or words.
            modality: modality of the items.

        Returns:
            Embeddings (n, e) in float32 on the CPU.
        """
        return self.method.embed_all(self.scaling.features(features, modality), modality)

    def _scores(self, queries: Tensor, gallery: Tensor) -> NDArray[np.float32]:
        source = score_source(queries, gallery, self.method.similarity)
        with np.errstate(over="ignore"):
            return np.asarray(source.block(0, len(queries)) / source.scale, dtype=np.float32)

    def _known(self, name: str) -> Modality:
        if name not in self.modalities:
            raise InputError(f"the model has no modality '{name}'; choose from {', '.join(self.modalities)}")
        return name

    def _check_width(self, features: Matrix, modality: Modality) -> None:
        expected = self.facts.dimensions[modality]
        if not expected:
            media = {"text": "captions", "audio": "paths of sound files"}.get(modality, "paths of videos")
            raise InputError(f"{modality}: features were passed, but this model reads {media}; pass {media}")
        if features.shape[1] != expected:
            raise InputError(
                f"{modality}: the features have {features.shape[1]} dimensions; pass features of {expected} dimensions"
            )
