"""Is everything in a run or a model folder what was written? Each file against its checksum."""

from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError
from aadml.model.files import is_model, verify_model
from aadml.model.packing import CARD, FACTS, WEIGHTS
from aadml.runs.manifest import ENVIRONMENT, MANIFEST, is_run, read_file, read_log, read_manifest


def verify(path: str | Path) -> list[str]:
    """Check a run or a model folder.

    Args:
        path: of the folder.

    Returns:
        What is damaged, missing or was changed, a sentence a file; nothing where all is whole.

    Raises:
        InputError: neither a run nor a model.

    Example:
        >>> folder = aadml.fit("synthetic:ave", method="cca").save("my model")
        >>> aadml.verify(folder)
        []
    """
    folder = Path(path)
    if not is_run(folder):
        return _without_manifest(folder)
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        return [str(error)]
    found = []
    for name in manifest.files:
        try:
            read_file(folder, name, manifest)
        except InputError as error:
            # a card is for people, who may write into it
            found.append(str(error) + (" (a card may be edited)" if name == CARD else ""))
    try:
        read_log(folder, manifest)
    except InputError as error:
        found.append(str(error))
    return found


def _without_manifest(folder: Path) -> list[str]:
    """Check a model folder, or say which file that once was here is missing."""
    if (folder / ENVIRONMENT).is_file():
        return [f"{folder / MANIFEST}: is missing; without it nothing of this run can be checked"]
    if is_model(folder):
        return verify_model(folder)
    if (folder / WEIGHTS).is_file():
        return [f"{folder / FACTS}: is missing; without it the model cannot be loaded"]
    read_manifest(folder)  # says what the folder is instead
    return []
