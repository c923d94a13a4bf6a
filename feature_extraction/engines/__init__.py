"""ENGINES: where clips are decoded: in processes of this machine, or of a Ray cluster."""

from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Protocol

from aadml.feature_extraction.engines.decoding_workers import DecodedPart, Task, Wanted
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import Registry, lookup
from aadml.feature_extraction.media import Limits


class Engine(Protocol):
    """What decodes clips; `aadml.feature_extraction.engines.decoding_workers.decode_all` says what of."""

    def __call__(
        self,
        tasks: Iterator[Task],
        wanted: Mapping[str, Wanted],
        /,
        *,
        clips: int,
        workers: int | None,
        time_limit: float,
        limits: Limits,
        gives_way: bool,
    ) -> Generator[tuple[Task, list[DecodedPart]]]:
        """Decode clips; each task comes back with its parts, in the order in which they are finished.

        Args:
            tasks: the clips; the next one is asked for when a process is free.
            wanted: what is wanted of each modality.
            clips: there are at most so many tasks.
            workers: decoding processes; None: one a processor.
            time_limit: seconds of processor time that one modality of a clip may take.
            limits: what is too large.
            gives_way: whether decoding leaves the processors to networks.
        """


ENGINES: Registry["Callable[..., Generator[tuple[Task, list[DecodedPart]]]]"] = Registry(
    "engine",
    {
        "local": "aadml.feature_extraction.engines.this_machine:decode",
        "ray": "aadml.feature_extraction.engines.on_ray:decode",
    },
)
"""Functions as `Engine` describes; whatever decodes, the same clip gives the same parts."""


def engine_of(name: str) -> Engine:
    """Find an engine.

    Args:
        name: a key of ENGINES, or "ray:ADDRESS" for a cluster that runs already ("ray:auto", "ray:10.0.0.7:6379").

    Raises:
        InputError: no such engine, or an address for one that takes none.
    """
    kind, colon, address = name.partition(":")
    entry = lookup(ENGINES, kind, "engine")
    if kind != "ray" and colon:
        raise InputError(f"engine {name}: {kind} takes no address; write ray:ADDRESS, ray or local")
    return partial(entry, address=address) if colon else entry


def need_package(name: str) -> None:
    """Refuse an engine whose package is not there, before a job begins that needs it.

    Raises:
        InputError: with what to install.
    """
    if name.partition(":")[0] == "ray":
        import_module("aadml.feature_extraction.engines.on_ray").package()
