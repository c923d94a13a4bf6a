"""The weights a user chose: by a name of the table, by a file or a folder of one's own; told apart by their content."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.table import WEIGHTS, recognize, weights_folder, weights_path
from aadml.feature_extraction.weights.tensor_files import read_tensors, sha256

_ENDINGS = (".safetensors", ".pth", ".pt", ".ckpt", ".npz", ".index")


@dataclass(frozen=True)
class ResolvedWeights:
    """What a weight file holds.

    Attributes:
        tensors: name -> tensor.
        published: the key of `WEIGHTS` whose content it is, under whatever name; None for any other content.
        sha256: of the file as it was given.
        name: of the file; the published one where its content is known.
    """

    tensors: dict[str, Tensor]
    published: str | None
    sha256: str
    name: str


def load_weights(choice: str, default: str, *, cache_dir: str | Path | None = None) -> ResolvedWeights:
    """Read the weights a user chose.

    Args:
        choice: `auto` for the default, a name of `WEIGHTS`, a file of one's own, or a folder that holds one.
        default: the name `auto` stands for.
        cache_dir: see `weights_folder`.

    Returns:
        The weights, known by their content.

    Raises:
        InputError: there is no such file, or it cannot be had, verified or read.
    """
    name = default if choice == "auto" else choice
    path = Path(choice).expanduser()
    if name in WEIGHTS and not path.exists():
        path = weights_path(name, cache_dir=cache_dir)
    elif not path.exists() and not path.with_name(f"{path.name}.index").exists():
        raise InputError(
            f"weights {choice}: no such file, and no published one of that name; "
            f"possible are a file, a folder that holds one, auto, untrained, {', '.join(WEIGHTS)}"
        )
    path = _in_folder(path, WEIGHTS[default].file) if path.is_dir() else path
    checksum = sha256(path)
    kept = weights_folder(cache_dir) / "converted" / f"{checksum}.safetensors"
    published = recognize(checksum, path, cache_dir=cache_dir)
    file = WEIGHTS[published].file if published else path.name
    return ResolvedWeights(read_tensors(path, kept=kept), published, checksum, file)


def _in_folder(folder: Path, published: str) -> Path:
    """Find the one weight file of a folder, or the one that bears the published name.

    A checkpoint in several files is named by what their names have in common.
    """
    if (folder / published).is_file():
        return folder / published
    if (folder / "saved_model.pb").is_file():
        raise InputError(
            f"weights {folder}: is a TensorFlow SavedModel; a network of this kind is used by --audio vggish-hub"
        )
    found = sorted(file for file in folder.iterdir() if file.is_file() and file.suffix in _ENDINGS)
    if len(found) != 1:
        there = ", ".join(file.name for file in found) or "none"
        raise InputError(
            f"weights {folder}: a folder must hold one weight file ({', '.join(_ENDINGS)}), it holds {there}; "
            "give the file itself"
        )
    return found[0].with_suffix("") if found[0].suffix == ".index" else found[0]
