"""Import of the `transformers` library, and its output to the terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aadml.feature_extraction.ground.errors import InputError


def transformers_for(what: str) -> Any:
    """Import `transformers`.

    Args:
        what: subject of the error message, what needs the library.

    Raises:
        InputError: the library is not installed.
    """
    try:
        import transformers
    except ImportError as error:
        raise InputError(f"{what} needs `transformers`; install it with: pip install 'aadml[hub]'") from error
    return transformers


@contextmanager
def silent(transformers: Any) -> Iterator[None]:
    """Silence progress bars and load reports of `transformers`; aadml checks and reports the same facts."""
    log = transformers.utils.logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()
