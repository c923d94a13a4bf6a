"""Previews of many clips: built in worker processes, and cached under the content of their files."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from aadml.feature_extraction.ground.atomic import write_bytes
from aadml.feature_extraction.ground.checksummed_json import seal, unseal
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.worker_pool import Finished, Lost, WorkerPool, processors
from aadml.feature_extraction.ground.worker_process import Conditions
from aadml.feature_extraction.weights.table import weights_folder
from aadml.reports.previews import Preview, PreviewSource, one_preview, rules, set_up

PROCESSOR_SECONDS = 60.0
"""Limit of the preview of one clip."""


def make_previews(
    sources: Sequence[PreviewSource], *, cache: Path | None = None, on_note: Callable[[str], None] | None = None
) -> list[Preview]:
    """Build the previews of clips in worker processes, so that a crash of a decoder affects only one clip.

    Previews are cached under the content of their files.

    Args:
        sources: files of each clip.
        cache: folder of cached previews; by default next to the weights.
        on_note: called if previews cannot be cached.
    """
    folder = cache or weights_folder().parent / "previews"
    keys = [_key(source) for source in sources]
    previews = {key: _cached(folder, key) for key in dict.fromkeys(keys) if key}
    missing = {key: source for key, source in zip(keys, sources, strict=True) if key and previews[key] is None}
    refusal = ""
    for key, preview in _built(missing):
        previews[key] = preview
        try:
            if preview.reason not in ("crashed", "timeout"):
                write_bytes(folder / f"{key}.json", seal(asdict(preview)), durable=False)
        except InputError as error:
            refusal = str(error)
    if refusal and on_note is not None:
        on_note(f"the previews of clips cannot be cached: {refusal}")
    return [previews.get(key) or Preview(reason="missing") for key in keys]


def _built(sources: Mapping[str, PreviewSource]) -> Iterator[tuple[str, Preview]]:
    """Yield previews with their keys, built in as many processes as there are cores."""
    workers = max(1, min(len(sources), processors()))
    with TemporaryDirectory() as folder:  # a worker that is killed leaves files
        conditions = Conditions(30 * PROCESSOR_SECONDS, PROCESSOR_SECONDS, setup=partial(set_up, folder))
        with WorkerPool(one_preview, workers, conditions) as pool:
            for event in pool.work_off(sources.items()):
                if isinstance(event, Finished):
                    yield event.task[0], event.value
                elif isinstance(event, Lost):
                    yield event.task[0], Preview(reason="timeout" if event.late else "crashed")


def _key(source: PreviewSource) -> str:
    """Return a checksum of everything that determines the bytes of a preview; empty if there is no file to read."""
    sums = {path: _sum(path) for path in dict.fromkeys((source.visual, source.audio)) if path}
    if not any(sums.values()):
        return ""
    content = [sums.get(source.visual), sums.get(source.audio)]
    return hashlib.sha256(json.dumps([content, rules()], sort_keys=True).encode()).hexdigest()


def _sum(path: str) -> str:
    """Return the SHA-256 of a file; empty if there is no file. A pipe or a device is not opened."""
    try:
        if not Path(path).is_file():
            return ""
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _cached(folder: Path, key: str) -> Preview | None:
    """Read a cached preview; None if it does not exist or is damaged."""
    place = folder / f"{key}.json"
    with suppress(OSError, InputError, TypeError):
        content = unseal(place.read_bytes(), place)
        return Preview(**{name: str(content[name]) for name in ("type", "media", "picture", "reason")})
    return None
