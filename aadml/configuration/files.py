"""Config files: their paths, their values and the line of each key."""

from pathlib import Path

from aadml.configuration import strict_yaml
from aadml.configuration.config import ConfigFile
from aadml.configuration.presets import configs_folder, preset_path
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import nearest


def open_config(name: str | Path) -> ConfigFile:
    """Read a config file by its path or by the name of a preset ("paper-r1").

    Raises:
        InputError: the file does not exist, cannot be read, is too large, or is not an unambiguous YAML mapping in
            UTF-8.
    """
    path = _found(name)
    try:
        with path.open("rb") as file:
            raw = file.read(strict_yaml.LARGEST + 1)
        if len(raw) > strict_yaml.LARGEST:
            raise InputError(f"{path}: the file has more than {strict_yaml.LARGEST} bytes; pass a smaller config")
        return parsed(raw.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: the text is not UTF-8; save the file as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check its permissions") from error


def parsed(text: str, place: Path) -> ConfigFile:
    """Parse the text of a config file; `place` is the path of the file, for messages.

    Raises:
        InputError: the text is not an unambiguous YAML mapping. The message has the line of the error, if known.
    """
    try:
        document = strict_yaml.read(text)
    except InputError as error:
        raise InputError(f"{place}, {error}" if str(error).startswith("line ") else f"{place}: {error}") from error
    if not isinstance(document.value, dict):
        kind = "is empty" if document.value is None else f"contains a value of type {type(document.value).__name__}"
        raise InputError(f"{place}: the file {kind}; pass a config, which is a mapping of sections")
    return ConfigFile(document.value, {key: f"{place.name}, line {line}" for key, line in document.lines.items()})


def _found(name: str | Path) -> Path:
    path, shipped = Path(name), preset_path(str(name))
    if not path.is_file() and path.suffix == "" and shipped.is_file():
        path = shipped
    if not path.is_file():
        if path.exists():
            raise InputError(f"{name} is not a file; pass a YAML file, or a preset of `aadml list configs`")
        known = sorted(p.stem for p in configs_folder().glob("*.yaml"))
        near = nearest(str(name), known)
        hint = f"did you mean '{near}'? " if near else ""
        raise InputError(
            f"{name}: the config file does not exist; {hint}pass a path, or choose a preset from {', '.join(known)}"
        )
    return path
