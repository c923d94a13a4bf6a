"""Names of pretrained networks: `hf:MODEL[@revision][#pooling]` sets an extractor and three of its options."""

from collections.abc import Callable
from pathlib import Path

PREFIX = "hf:"


def expanded(name: str, modality: str) -> tuple[str, dict[str, str]]:
    """Resolve the name of an extractor.

    Args:
        name: an entry of a registry, an import path, or `hf:MODEL[@revision][#pooling]`, where MODEL is a folder or
            a name on the Hugging Face Hub.
        modality: modality of the extractor.

    Returns:
        A name and a mapping. The name is an entry of a registry, or an import path. The mapping contains the
        options that `name` contains, by the name of the option.
    """
    if not name.startswith(PREFIX):
        return name, {}
    options: dict[str, str] = {}
    model = name.removeprefix(PREFIX)
    for sign, option in (("#", "pooling"), ("@", "revision")):
        before, _, after = model.rpartition(sign)
        if before and after and not Path(model).exists():
            model, options[option] = before, after
    return f"hf-{modality}", {"model": model, **options}


def without_folder(name: str) -> str:
    """Return `hf:FOLDER` with only the last part of the folder's path; a name on the hub is unchanged."""
    return _in_folder(name, lambda folder: folder.resolve().name)


def with_absolute_folder(name: str) -> str:
    """Return `hf:FOLDER` with the absolute path of the folder; a name on the hub is unchanged."""
    return _in_folder(name, lambda folder: str(folder.absolute()))


def _in_folder(name: str, change: Callable[[Path], str]) -> str:
    model = expanded(name, "text")[1]["model"]
    folder = Path(model).expanduser()
    return PREFIX + name.removeprefix(PREFIX).replace(model, change(folder), 1) if folder.exists() else name
