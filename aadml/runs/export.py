"""Export of the model of a run or a model folder."""

from pathlib import Path

from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.model.export import ExportedHead
from aadml.model.model import Model
from aadml.runs.loading import load


@with_consent("model")
def export(model: Model | str | Path, output: str | Path, *, trust_code: bool = False) -> tuple[ExportedHead, ...]:
    """Write one file for each modality of a model, in ONNX or as a program of `torch.export`; see `Model.export`.

    Args:
        model: a model, or the path of a run or a model folder.
        output: path that ends in ".onnx" or ".pt2"; "head.onnx" becomes "head-audio.onnx", "head-visual.onnx".
        trust_code: import the code from outside aadml that the model names as `module:name`.

    Returns:
        The written files, one per modality.

    Raises:
        InputError: the model cannot be loaded or exported, or an output would overwrite a file of another kind.
        MissingExtraError: the packages of `aadml[onnx]` are not installed.
    """
    model = model if isinstance(model, Model) else load(model, device="cpu")
    return model.export(output)
