"""Contracts of registries: classes that state the arguments and the result of an entry.

The contract of functions and factories is a `Protocol` class with `__call__`. The contract of other entries is
their class. The lookup of an external entry checks the signature or the class of the entry. The result of an entry
is checked during the call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, isabstract, isclass, signature
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

from aadml.feature_extraction.ground.errors import InputError

T = TypeVar("T")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Condition:
    """Condition on a result, as metadata of `Annotated`.

    Attributes:
        text: description of the result ("a scalar Tensor").
        holds: predicate on a result of the annotated type.
    """

    text: str
    holds: Callable[[Any], bool]


def require_contract(entry: object, contract: type | None, kind: str, place: str) -> None:
    """Raise InputError for an entry that does not have the signature, or the class, of its contract.

    Args:
        entry: an object of the registry.
        contract: contract of the registry; None for any callable.
        kind: kind of the entry ("loss").
        place: import path of the entry.
    """
    is_signature = contract is None or _is_protocol(contract)
    if not (callable(entry) if is_signature else isinstance(entry, contract)):  # type: ignore[arg-type]
        raise InputError(f"{kind} {place} is {_described(entry)}{_expected(contract, kind)}")
    if contract is None or not is_signature:
        return
    is_module = isclass(entry) and hasattr(entry, "forward") and not _members(_result(contract))
    function: Any = entry.forward if is_module else entry  # type: ignore[attr-defined]
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # a callable of an extension module may have no signature
        return
    count = len(_positional(contract))
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL][is_module:]
    required = [parameter for parameter in positional if parameter.default is Parameter.empty]
    variadic = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters)
    if len(required) > count or (len(positional) < count and not variadic):
        names = ", ".join(parameter.name for parameter in positional) or "no positional arguments"
        raise InputError(f"{kind} {place} takes {names}{_expected(contract, kind)}")


def require_result(value: T, contract: type, kind: str, entry: object) -> T:
    """Check the result of an entry against its contract, and return the result.

    Args:
        value: the result.
        contract: contract of the entry's registry.
        kind: kind of the entry ("loss").
        entry: the entry, or its name.

    Raises:
        InputError: the result breaks the contract. The message contains the expected signature.
    """
    wanted = _result(contract)
    if not _fits(value, wanted):
        missing = [name for name in _members(wanted) if not hasattr(value, name)]
        lack = f" without {', '.join(missing)}" if missing else ""
        raise InputError(f"{kind} {_place(entry)} returned {_described(value)}{lack}{_expected(contract, kind)}")
    return value


def require_part(part: object, condition: Condition, name: str, kind: str, entry: object) -> None:
    """Raise InputError if a part of an entry's result breaks `condition`.

    Args:
        part: the part, such as the total of `Terms`.
        condition: condition on the part ("a Tensor of shape (50,)"). The condition may depend on the entry's
            arguments.
        name: name of the part ("total").
        kind: kind of the entry ("loss").
        entry: the entry, or its name.
    """
    if not condition.holds(part):
        raise InputError(
            f"{kind} {_place(entry)} returned {_described(part)} as {name}; return {condition.text} "
            "(see docs/extending.md)"
        )


def expected(contract: type) -> str:
    """Return a contract as text.

    Returns:
        For a protocol, the text has the form "(comparison, *, options) -> Terms(total)". For another class, the
        text has the form "an object CLASS", "an object CLASS with MEMBERS" or "an object CLASS(FIELDS)".
    """
    if not _is_protocol(contract):
        return f"an object {_shape(contract)}"
    kinds = [parameter.kind for parameter in signature(contract.__call__).parameters.values()]
    options = ["*", "options"] if Parameter.VAR_KEYWORD in kinds else []
    return f"({', '.join([*_positional(contract), *options])}) -> {_shape(_result(contract))}"


def _expected(contract: type | None, kind: str) -> str:
    if contract is None:
        return ", which cannot be called; pass a function or a class"
    return f"; define {_article(kind)} {kind} as {expected(contract)} (see docs/extending.md)"


def _article(noun: str) -> str:
    return "an" if noun[0].lower() in "aeiou" else "a"


def _is_protocol(contract: object) -> bool:
    return isclass(contract) and Protocol in contract.__mro__


def _positional(contract: type) -> list[str]:
    parameters = signature(contract.__call__).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind in _POSITIONAL][1:]


_RESULTS: dict[type, Any] = {}


def _result(contract: type) -> Any:
    if contract not in _RESULTS:  # torch.compile cannot follow `functools.cache`
        _RESULTS[contract] = get_type_hints(contract.__call__, include_extras=True)["return"]
    return _RESULTS[contract]


def _members(wanted: Any) -> list[str]:
    """Return the members that a protocol or an abstract class requires; [] for other types."""
    if isabstract(wanted):
        return sorted(wanted.__abstractmethods__)
    if not _is_protocol(wanted):
        return []
    bases = [base for base in wanted.__mro__ if _is_protocol(base) and base is not Protocol]
    return sorted({name for base in bases for name in {**vars(base), **base.__annotations__} if name[0] != "_"})


def _fits(value: object, wanted: Any) -> bool:
    if get_origin(wanted) is Annotated:
        inner, *conditions = get_args(wanted)
        return _fits(value, inner) and all(c.holds(value) for c in conditions if isinstance(c, Condition))
    if get_origin(wanted) is list:
        return isinstance(value, list | tuple) and all(_fits(part, get_args(wanted)[0]) for part in value)
    if _is_protocol(wanted):
        return not isclass(value) and all(hasattr(value, name) for name in _members(wanted))
    plain = unaliased(wanted)
    return isinstance(value, get_origin(plain) or plain)


def unaliased(wanted: Any) -> Any:
    """Return the type of an alias, such as `NDArray` since NumPy 2.5; other types are returned unchanged."""
    kind = get_origin(wanted) or wanted
    return unaliased(kind.__value__) if hasattr(kind, "__value__") else wanted


def _shape(wanted: Any) -> str:
    if get_origin(wanted) is Annotated:
        return next(c.text for c in get_args(wanted) if isinstance(c, Condition))
    if get_origin(wanted) is list:
        return f"list of {get_args(wanted)[0].__name__}"
    members = _members(wanted)
    if members:
        return f"{wanted.__name__} with {', '.join(members)}"
    every = signature(wanted).parameters.values() if "__init__" in vars(wanted) else ()
    named = [parameter for parameter in every if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]
    names = [parameter.name for parameter in named if parameter.default is Parameter.empty] or [p.name for p in named]
    return f"{wanted.__name__}({', '.join(names)})" if names else str(wanted.__name__)


def _place(entry: object) -> str:
    while isinstance(entry, partial):
        entry = entry.func
    if isinstance(entry, str):
        return entry
    named = entry if hasattr(entry, "__qualname__") else type(entry)
    return f"{named.__module__}:{named.__qualname__}"


def _described(value: object) -> str:
    shape = getattr(value, "shape", None)
    name = "None" if value is None else f"{_article(type(value).__name__)} {type(value).__name__}"
    return f"{name} of shape {tuple(shape)}" if isinstance(shape, tuple) else name
