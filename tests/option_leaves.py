"""Alternatives of the types of options, for laws over all options."""

import types
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt

from aadml.feature_extraction.ground.option_types import metadata_of


def leaves(kind: Any, metadata: tuple[object, ...] = ()) -> Iterator[tuple[Any, tuple[object, ...]]]:
    """Yield (plain type or Literal, metadata) of each alternative of unions and each item type of tuples."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from leaves(get_args(kind)[0], (*metadata, *metadata_of(kind)))
    elif origin in (Union, types.UnionType):
        for alternative in get_args(kind):
            yield from leaves(alternative)
    elif origin is tuple:
        for item in dict.fromkeys(get_args(kind)):
            if item is not Ellipsis:
                yield from leaves(item)
    else:
        yield kind, metadata


def is_bounded(metadata: Iterable[object]) -> bool:
    """Return whether the metadata of a number contain a lower and an upper bound."""
    bounds = list(metadata)
    return any(isinstance(b, Gt | Ge) for b in bounds) and any(isinstance(b, Lt | Le) for b in bounds)
