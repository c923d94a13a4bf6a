"""Decoding in processes of this machine."""

from collections.abc import Generator, Iterator, Mapping

from aadml.feature_extraction.engines.decoding_workers import DecodedPart, Task, Wanted, decode_all
from aadml.feature_extraction.ground.worker_pool import processors
from aadml.feature_extraction.media import Limits


def decode(
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
    """Decode in processes of this machine; args as of `Engine`."""
    count = min(workers or processors(), clips)
    yield from decode_all(tasks, wanted, workers=count, time_limit=time_limit, limits=limits, gives_way=gives_way)
