"""Verification of the files of a run or a model folder by their checksums."""

from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError
from aadml.model.files import is_model, verify_model
from aadml.model.packing import CARD, FACTS, WEIGHTS
from aadml.runs.manifest import ENVIRONMENT, LOG, MANIFEST, is_run, newest_run, read_manifest


def verify_folder(folder: Path) -> list[str]:
    """Check a run or a model folder; see `aadml.verify`.

    Returns:
        A sentence for each damaged, missing or changed file of a run, or for the first such file of a model; empty if
        all files are intact. Without a readable manifest, the only sentence is on the manifest.

    Raises:
        InputError: the folder is neither a run nor a model.
    """
    folder = newest_run(folder)
    if not is_run(folder):
        return _without_manifest(folder)
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        return [str(error)]
    damages = []
    for name in (*manifest.files, LOG):
        try:
            if name == LOG:
                manifest.read_log()
            else:
                manifest.read(name)
        except InputError as error:
            damages.append(str(error) + (" (a card may be edited)" if name == CARD else ""))
    return damages


def _without_manifest(folder: Path) -> list[str]:
    if (folder / ENVIRONMENT).is_file():
        return [f"{folder / MANIFEST} is missing, so no file of this run can be checked; restore the file"]
    if is_model(folder):
        return verify_model(folder)
    if (folder / WEIGHTS).is_file():
        return [f"{folder / FACTS} is missing, so the model cannot be loaded; restore the file"]
    raise InputError(
        f"{folder} is not a run or a model; pass the folder of a run or a model, the folder OUTPUT.work of an "
        "extraction, or a file that aadml wrote"
    )
