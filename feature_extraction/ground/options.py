"""Options of functions: their keyword-only arguments are the schema, and an unknown one is refused."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from feature_extraction.ground.errors import InputError
from feature_extraction.ground.tables import suggestion


def schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Map each keyword-only argument of `function` to its default (`Parameter.empty` where it must be given)."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def checked_options(function: Callable[..., Any], options: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Complete `options` with the defaults of `function`'s keyword-only arguments, refusing what it does not take.

    Args:
        function: its keyword-only arguments are the schema.
        options: what was given.
        where: the config section, for the message ("loss").

    Returns:
        Every option of the function, in the function's order.

    Raises:
        InputError: an option the function does not take, one of another type than the default, or a missing one.
    """
    known = schema(function)
    name = getattr(function, "__name__", str(function)).strip("_").replace("_", "-")
    for key in options:
        if key not in known:
            raise InputError(f"{where}.{key}: {name} takes no such option; {suggestion(key, known)}")
    complete = {key: options.get(key, default) for key, default in known.items()}
    for key, value in complete.items():
        if value is inspect.Parameter.empty:
            raise InputError(f"{where}.{key}: {name} needs this option")
        if key in options:
            complete[key] = _of_the_type_of(known[key], value, f"{where}.{key}")
    return complete


def _of_the_type_of(default: Any, value: Any, where: str) -> Any:
    """Return `value` in the type of `default`: an int is a float too, a list is a tuple; anything else must match."""
    if default is None or default is inspect.Parameter.empty or value is None:
        return value
    if isinstance(default, bool) or isinstance(value, bool):
        fits = isinstance(default, bool) and isinstance(value, bool)
    elif isinstance(default, float):
        fits = isinstance(value, int | float)
        value = float(value) if fits else value
    elif isinstance(default, tuple):
        fits = isinstance(value, list | tuple)
        value = tuple(value) if fits else value
    elif isinstance(default, int):
        fits = isinstance(value, int)
    elif isinstance(default, str):
        # a number may stand where a word does ("auto", or a count): the function decides
        fits = isinstance(value, int | float | str)
    else:
        fits = True
    if not fits:
        raise InputError(
            f"{where}: {value!r} is a {type(value).__name__}; wanted a {type(default).__name__}, like {default!r}"
        )
    return value
