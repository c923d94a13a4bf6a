"""Weights selected by a user: a name of the table, a file or a folder. Published files are recognized by content."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.weights.table import WEIGHTS, recognize, weights_folder, weights_path
from aadml.feature_extraction.weights.tensor_files import read_tensors, refuse_keras

_ENDINGS = (".safetensors", ".pth", ".pt", ".ckpt", ".npz")
_KERAS = (".h5", ".keras")


@dataclass(frozen=True)
class ResolvedWeights:
    """Content and identity of a weight file.

    Attributes:
        tensors: name -> tensor.
        published: key of `WEIGHTS` with the same content; None for any other content.
        sha256: checksum of the file.
        name: name of the file; the published name if the content is published.
    """

    tensors: dict[str, Tensor]
    published: str | None
    sha256: str
    name: str


def load_weights(choice: str, default: str) -> ResolvedWeights:
    """Read the weights that a user selects.

    Args:
        choice: `auto` for the default, a name of `WEIGHTS`, a file, or a folder. A folder must contain the
            published file of `default`, or exactly one weight file.
        default: key of `WEIGHTS` that `auto` selects.

    Raises:
        InputError: an unknown `choice`, a folder without such a file, or a file that cannot be obtained, verified
            or read.
    """
    name = default if choice == "auto" else choice
    path = Path(choice).expanduser()
    if name in WEIGHTS and not path.exists():
        path = weights_path(name)
    elif not path.exists():
        raise InputError(
            f"weights {choice} is neither a file nor the name of a published file; "
            f"pass a file, a folder with one weight file, auto, untrained, or one of {', '.join(WEIGHTS)}"
        )
    path = _in_folder(path, WEIGHTS[default].file) if path.is_dir() else path
    checksum = sha256(path)
    cache = weights_folder() / "converted" / f"{checksum}.safetensors"
    published = recognize(checksum, path)
    file = WEIGHTS[published].file if published else path.name
    return ResolvedWeights(read_tensors(path, cache=cache), published, checksum, file)


def _in_folder(folder: Path, published: str) -> Path:
    """Return the file with the published name in a folder, or else the only weight file of the folder."""
    if (folder / published).is_file():
        return folder / published
    if (folder / "saved_model.pb").is_file():
        raise InputError(
            f"weights {folder} is a TensorFlow SavedModel, which only the extractor vggish-hub reads; "
            "choose the extractor vggish-hub, or pass another weight file"
        )
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.suffix in _ENDINGS)
    for foreign in folder.iterdir() if not files else ():
        if foreign.suffix in _KERAS and foreign.is_file():
            refuse_keras(foreign)
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise InputError(
            f"weights {folder}: the folder must contain one weight file ({', '.join(_ENDINGS)}), but contains {names}; "
            "pass the path of one weight file"
        )
    return files[0]
