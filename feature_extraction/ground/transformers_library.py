"""Import of the `transformers` library, without its output to the terminal and without code from the hub."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import optional


def transformers_for(what: str) -> Any:
    """Import `transformers`.

    Args:
        what: the feature that needs the library, as the subject of the error message.

    Raises:
        MissingExtraError: the library cannot be imported.
    """
    return optional("transformers", what, "aadml[hub]")


def refuse_kernels(config: object, place: object, key: str = "") -> None:
    """Raise InputError for a configuration that names a kernel on the hub.

    A kernel is code that `transformers` would download and run.

    Args:
        config: content of `config.json`, or a part of it.
        place: path of the configuration, for the message.
        key: key of the part.

    Raises:
        InputError: a setting of the configuration is the name of a kernel.
    """
    if isinstance(config, Mapping):
        for name, part in config.items():
            refuse_kernels(part, place, f"{key}.{name}" if key else str(name))
    elif "implementation" in key and isinstance(config, str) and "/" in config:
        raise InputError(
            f"{place}: {key} is {config[:80]!r}, which is code on the hub and is not run; remove this key, or use "
            "another model"
        )


@contextmanager
def silent(transformers: Any) -> Iterator[None]:
    """Silence progress bars, load reports and printed messages of `transformers`; aadml performs its own checks."""
    log = transformers.utils.logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        with redirect_stdout(StringIO()):
            yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()
