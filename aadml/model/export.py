"""Export of a model to files that run without aadml, in ONNX or as programs of `torch.export`."""

import copy
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.atomic import atomic_path, refuse_links, refuse_other_kind
from aadml.feature_extraction.ground.checksummed_json import FileSum
from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.ground.import_paths import optional
from aadml.methods.training.learned_method import LearnedMethod
from aadml.model.packing import WEIGHTS

if TYPE_CHECKING:
    from aadml.model.model import Model

FORMAT = "aadml-head"
KINDS = (".onnx", ".pt2")
LIMIT = 1e-5
"""Largest accepted difference between file and model, relative to max(1, largest absolute value of the embeddings)."""
ROWS = (1, 5)
"""Numbers of rows on which a file is compared with the model."""


@dataclass(frozen=True)
class ExportedHead:
    """Exported file, which embeds one modality.

    Attributes:
        path: path of the file.
        modality: modality that the file embeds.
        width: number of dimensions of the features.
        dimension: number of dimensions of the embeddings.
        difference: largest absolute difference between embeddings by the file and by the model, on random features.
    """

    path: Path
    modality: Modality
    width: int
    dimension: int
    difference: float


class _Head(nn.Module):
    """Module that computes embeddings (n, e) of one modality from raw features (n, d), which the module scales."""

    def __init__(self, model: "Model", modality: Modality) -> None:
        super().__init__()
        method = copy.deepcopy(model.method)
        if isinstance(method, LearnedMethod):
            _freeze(method.learner.cpu().eval())
        self._embed = method.learner.embed if isinstance(method, LearnedMethod) else method.embed
        self._scaled, self._modality = model.scaling.scaled, modality

    def forward(self, features: Tensor) -> Tensor:
        """Return embeddings (n, e) of raw features (n, d), in float32."""
        return self._embed(self._scaled(features, self._modality), self._modality).float()


def _freeze(module: nn.Module) -> None:
    """Convert parameters to buffers, so that parameters of other modalities are not written to the file."""
    for part in module.modules():
        for name, value in [*part.named_parameters(recurse=False)]:
            delattr(part, name)
            part.register_buffer(name, value.detach())


def export_heads(model: "Model", path: Path) -> tuple[ExportedHead, ...]:
    """Write one file for each modality, and compare each file with the model.

    See `Model.export`.

    Raises:
        InputError: see `Model.export`.
        MissingExtraError: the packages of `aadml[onnx]` are not installed.
    """
    if path.suffix not in KINDS:
        raise InputError(f"{path}: the ending is '{path.suffix}'; choose {' or '.join(KINDS)}")
    media = [modality for modality, width in model.facts.dimensions.items() if not width]
    if media:
        raise InputError(
            f"export: the model reads {' and '.join(media)} from media or words, but only models that read features "
            "can be exported; train on a feature file (`aadml extract`)"
        )
    places = {modality: path.with_name(f"{path.stem}-{modality}{path.suffix}") for modality in model.modalities}
    refuse_links(*places.values())
    for place in places.values():
        refuse_other_kind(place, "an exported model", lambda file: FORMAT.encode() in file.read_bytes())
    write = _onnx if path.suffix == ".onnx" else _program
    with ExitStack() as files:
        return tuple(
            _exported(model, modality, place, files.enter_context(atomic_path(place)), write)
            for modality, place in places.items()
        )


def _exported(
    model: "Model", modality: Modality, place: Path, temporary: Path, write: Callable[..., Callable[[Tensor], Tensor]]
) -> ExportedHead:
    shift, scale = model.scaling.shift[modality], model.scaling.scale[modality]
    rows = shift + scale * torch.randn(sum(ROWS), len(shift), generator=torch.Generator().manual_seed(0))
    with _quiet():
        try:
            head = torch.export.export(_Head(model, modality), (rows,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
            embed = write(head, modality, _metadata(model, modality), temporary)
            wanted = model.embed_features(rows, modality)
            embedded = torch.cat([embed(part) for part in rows.split(ROWS)])
        except (InputError, OSError):
            raise
        except Exception as error:  # torch.export and the converter to ONNX have no common class of errors
            raise InputError(
                f"{model.facts.label}: the {modality} part cannot be exported ({cause(error)}); choose another method"
            ) from error
    difference = float((wanted - embedded).abs().max())
    if not difference <= LIMIT * max(1.0, float(wanted.abs().max())):
        raise InputError(
            f"{place}: the exported {modality} part differs from the model by {difference:.2g}; use the ending "
            f"{next(kind for kind in KINDS if kind != place.suffix)}"
        )
    return ExportedHead(place, modality, len(shift), wanted.shape[1], difference)


def _onnx(head: Any, modality: Modality, metadata: dict[str, str], temporary: Path) -> Callable[[Tensor], Tensor]:
    """Write a program as ONNX, and return the computation of the file as a function of features."""
    for module in ("onnx", "onnxscript"):
        optional(module, "export to ONNX", "aadml[onnx]")
    runtime = optional("onnxruntime", "export to ONNX", "aadml[onnx]")
    converted = torch.onnx.export(head, input_names=[modality], output_names=["embedding"], dynamo=True, verbose=False)
    assert converted is not None
    converted.model.metadata_props.update(metadata)
    converted.save(temporary)
    session = runtime.InferenceSession(temporary, providers=["CPUExecutionProvider"])
    return lambda rows: torch.from_numpy(session.run(None, {modality: rows.numpy()})[0])


def _program(head: Any, modality: Modality, metadata: dict[str, str], temporary: Path) -> Callable[[Tensor], Tensor]:
    """Write a program of `torch.export`, and return the computation of the file as a function of features."""
    torch.export.save(head, temporary, extra_files={"metadata.json": json.dumps(metadata)})
    loaded = torch.export.load(temporary).module()
    return lambda rows: loaded(rows).detach()


def _metadata(model: "Model", modality: Modality) -> dict[str, str]:
    """Return the metadata of a file; lists and mappings are JSON."""
    facts = model.facts
    return {
        "format": FORMAT,
        "modality": modality,
        "width": str(facts.dimensions[modality]),
        "method": facts.label,
        "similarity": model.method.similarity,
        "protocol": facts.protocol,
        "class_names": json.dumps(facts.class_names),
        "features": json.dumps(facts.features.get(modality, {})),
        "model_sha256": FileSum.of(model.pack()[WEIGHTS]).sha256,
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress all warnings within the context, and messages of the logger `torch.onnx` below the level ERROR.

    The messages are not needed, since `_exported` compares the written files with the model.
    """
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
