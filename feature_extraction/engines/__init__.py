"""Engines that decode clips in processes of this machine or of a Ray cluster."""

from collections.abc import Generator, Iterator
from functools import partial
from typing import Protocol

from aadml.feature_extraction.engines import decoding_workers
from aadml.feature_extraction.engines.decoding_workers import DecodedPart, DecodingSettings, Task
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import require_entry


class Engine(Protocol):
    """Decoder of clips; all engines return the same parts for the same clip."""

    def __call__(
        self, tasks: Iterator[Task], settings: DecodingSettings, /, *, clips: int, workers: int | None
    ) -> Generator[tuple[Task, list[DecodedPart]]]:
        """Decode clips and yield each task with its parts, in the order of completion.

        Args:
            tasks: the clips; at most one clip is drawn before a process is free.
            settings: modalities and limits.
            clips: upper bound of the number of tasks.
            workers: number of decoding processes; None for one process per processor.
        """


def engine_of(name: str) -> Engine:
    """Return the function that decodes clips with an engine.

    Args:
        name: "local", "ray", or "ray:ADDRESS" for a running cluster ("ray:auto", "ray:10.0.0.7:6379").

    Raises:
        InputError: an unknown engine, an address with an engine other than ray, or a missing package `ray`.
    """
    kind, colon, address = name.partition(":")
    require_entry(dict.fromkeys(("local", "ray")), kind, "engine")
    if kind == "ray":
        from aadml.feature_extraction.engines import on_ray  # late, as every decoding process imports this package

        on_ray.package()
        return partial(on_ray.decode, address=address) if colon else on_ray.decode
    if colon:
        raise InputError(f"engine {name}: {kind} does not accept an address; choose ray:ADDRESS, ray or local")
    return decoding_workers.decode_all
