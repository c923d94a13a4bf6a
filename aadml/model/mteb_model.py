"""Models as encoders of mteb, which evaluates encoders on retrieval tasks."""

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import optional
from aadml.methods.training.session import Checkpoint
from aadml.model.packing import pack_tensors

if TYPE_CHECKING:
    from aadml.model.model import Model

MODALITIES = {"audio": "audio", "video": "visual", "image": "visual", "text": "text"}
"""Column of mteb -> modality of a model."""


class MtebModel:
    """Encoder of mteb that embeds sounds, pictures or words by a model, each item alone; see `Model.to_mteb`."""

    def __init__(self, model: "Model", name: str) -> None:
        meta = optional("mteb.models", "a model of mteb", "mteb").ModelMeta
        self.model = model
        kinds = [kind for kind, modality in MODALITIES.items() if modality in model.modalities]
        self.mteb_model_meta = meta.create_empty({"name": name, "revision": _revision(model), "modalities": kinds})

    def encode(
        self,
        inputs: Iterable[Mapping[str, Sequence[Any]]],
        *,
        task_metadata: Any,
        prompt_type: Any = None,
        **_: object,
    ) -> NDArray[np.float32]:
        """Return embeddings (n, e) of the batches of mteb.

        Raises:
            InputError: items of several modalities or of a modality that the model lacks, items that cannot be
                embedded, or media already decoded by mteb.
        """
        kinds = [kind for kind in task_metadata.get_modalities(prompt_type) if kind in MODALITIES]
        if len(kinds) != 1 or MODALITIES[kinds[0]] not in self.model.modalities:
            raise InputError(
                f"mteb: the items have {' and '.join(kinds) or 'no known modality'}, but the model embeds one of "
                f"{', '.join(self.model.modalities)} at a time; choose another task"
            )
        return np.concatenate([self._embedded(kinds[0], batch[kinds[0]]) for batch in inputs])

    def similarity(self, first: Any, second: Any) -> NDArray[np.float32]:
        """Return the similarity (n, m) of the model for two sets of embeddings (n, e) and (m, e)."""
        return np.asarray(self.model.similarity(np.asarray(first), np.asarray(second)))

    def similarity_pairwise(self, first: Any, second: Any) -> NDArray[np.float32]:
        """Return the similarity (n,) of corresponding rows in two sets of embeddings (n, e)."""
        rows = zip(np.asarray(first), np.asarray(second), strict=True)
        return np.array([self.model.similarity(a[None], b[None])[0, 0] for a, b in rows])

    def _embedded(self, kind: str, items: Sequence[Any]) -> NDArray[np.float32]:
        if kind == "text":
            return np.asarray(self.model.embed(text=list(items)))
        with tempfile.TemporaryDirectory() as folder:
            paths = [_file(Path(folder) / str(number), item) for number, item in enumerate(items)]
            return np.asarray(self.model.embed(**{MODALITIES[kind]: paths}))


def _revision(model: "Model") -> str:
    """Return a checksum of facts and weights, so that mteb stores the results of different models separately."""
    facts = json.dumps(model.facts.to_json(), sort_keys=True).encode()
    return sha256(facts + pack_tensors(Checkpoint(model.tensors(), {}))).hexdigest()[:12]


def _file(place: Path, item: Any) -> str:
    """Return the path of the media file of an item.

    The bytes of an item, if present, are first written to `place` with the suffix of the item's path.

    Raises:
        InputError: mteb has already decoded the item.
    """
    if not isinstance(item, Mapping) or not {"bytes", "path"} <= item.keys():
        raise InputError(
            f"mteb: an item is a decoded {type(item).__name__}, but the model decodes files itself; cast the column "
            "of the task to Audio(decode=False), Image(decode=False) or Video(decode=False)"
        )
    if item["bytes"] is None:
        return str(item["path"])
    place = place.with_suffix(Path(item["path"] or "clip.mp4").suffix)
    place.write_bytes(item["bytes"])
    return str(place)
