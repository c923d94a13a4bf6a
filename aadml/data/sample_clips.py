"""Sample clips: rendered MP4 files of ten everyday events and their manifest, without a download."""

import os
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from annotated_types import Interval

from aadml.comparison.options import Count, Seed
from aadml.data.manifests.listing import ListedClip, write_manifest
from aadml.data.samples.captions import CAPTIONS, write_captions
from aadml.data.samples.clip import FRAME_RATE, RenderedClip, render_clip
from aadml.data.samples.events import EVENTS
from aadml.data.samples.mp4 import write_mp4
from aadml.data.samples.sound import RATE
from aadml.feature_extraction.ground.atomic import atomic_path, refuse_links, refuse_other_kind
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import built
from aadml.feature_extraction.ground.worker_pool import Finished, WorkerPool, processors
from aadml.feature_extraction.ground.worker_process import Conditions

_MANIFEST = re.compile(r"id,media,label,split.*\n(([a-z-]+-\d{4,}),clips/\2\.mp4,.*\n)+")
_GRACE = 10.0  # seconds to finish a clip after an interruption
_SPLIT_OF_TURN = tuple({"T": "train", "V": "valid", "E": "test"}[turn] for turn in "TETVTETTTVTETTETVTET")


@dataclass(frozen=True, kw_only=True)
class SampleClips:
    """Parameters of a set of sample clips.

    Args:
        clips: number of clips; clip i shows event i modulo 10 and does not depend on the number of clips.
        seconds: length of a clip, in seconds.
        seed: seed of all randomness.
    """

    clips: Count = 200
    seconds: Annotated[float, Interval(ge=0.5, le=60)] = 2.0
    seed: Seed = 0

    def label(self, index: int) -> str:
        """Return the event of clip `index`."""
        return list(EVENTS)[index % len(EVENTS)]

    def split(self, index: int) -> str:
        """Return the split of clip `index`; of 20 clips of an event, 12 are in train, 3 in valid and 5 in test."""
        return _SPLIT_OF_TURN[index // len(EVENTS) % len(_SPLIT_OF_TURN)]

    def name(self, index: int) -> str:
        """Return the id of clip `index`."""
        return f"{self.label(index).replace(' ', '-')}-{index:04d}"

    def listed(self, index: int, folder: Path, captions: Sequence[str]) -> ListedClip:
        """Return clip `index` as an entry of the manifest in `folder`."""
        columns = {f"caption_{number}": caption for number, caption in enumerate(captions, start=1)}
        name, labels = self.name(index), (self.label(index),)
        return ListedClip(name, folder / "clips" / f"{name}.mp4", labels, self.split(index), columns=columns)

    def render(self, index: int) -> RenderedClip:
        """Return the traits, sound and pictures of clip `index`."""
        return render_clip(self.label(index), index, seconds=self.seconds, seed=self.seed)


def sample_data(
    folder: str | os.PathLike[str],
    *,
    clips: int = 200,
    seconds: float = 2.0,
    seed: int = 0,
    workers: Count | None = None,
    progress: Callable[[int], object] | None = None,
) -> Path:
    """Render sample clips of ten everyday events, as MP4 files with sound, and write their manifest.

    Every clip is rendered, even if its file exists. An incomplete file has a temporary name. An old manifest is removed
    first, and the new manifest is written last. After any interruption, a folder with a manifest is therefore a
    complete set.

    Args:
        folder: target folder; created if needed.
        clips: number of clips; the ten events alternate.
        seconds: length of a clip, in seconds.
        seed: seed of all randomness; equal seeds produce equal clips.
        workers: largest number of worker processes, by default one per core. At most one per ten clips, rounded up, is
            used, and a single worker is replaced by the calling process.
        progress: called with the number of clips done since the last call.

    Returns:
        The path of the manifest, ready for `aadml.extract`: `id,media,label,split,caption_1..caption_5`, with paths
        of media relative to the manifest.

    Raises:
        InputError: the folder cannot be written or contains a manifest of other clips, or a parameter is out of its
            range.
        RuntimeError: a process ended early.
    """
    sample = built(SampleClips, OptionValues(clips=clips, seconds=seconds, seed=seed), "")
    target = Path(folder)
    manifest = target / "manifest.csv"
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file; pass a folder for the sample clips")
    refuse_links(manifest, target / "clips")
    refuse_other_kind(manifest, "a manifest of sample clips", _lists_sample_clips)
    try:
        (target / "clips").mkdir(parents=True, exist_ok=True)
        manifest.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror}); choose another folder") from error
    count = min(workers or processors(), -(-sample.clips // len(EVENTS)))
    captions: dict[int, tuple[str, ...]] = {}
    with closing(_rendered(sample, target, count)) as finished:
        for index, sentences in finished:
            captions[index] = sentences
            if progress is not None:
                progress(1)
    write_manifest(manifest, [sample.listed(index, target, captions[index]) for index in range(sample.clips)])
    return manifest


def _lists_sample_clips(manifest: Path) -> bool:
    return _MANIFEST.fullmatch(manifest.read_text(encoding="utf-8", errors="replace")) is not None


def _rendered(sample: SampleClips, folder: Path, workers: int) -> Generator[tuple[int, tuple[str, ...]]]:
    """Yield the numbers and captions of finished clips; worker processes end with the generator."""
    if workers <= 1:
        yield from (_write_clip(sample, folder, index) for index in range(sample.clips))
        return
    with WorkerPool(partial(_write_clip, sample, folder), workers, Conditions(grace=_GRACE)) as pool:
        for event in pool.work_off(range(sample.clips)):
            if not isinstance(event, Finished):
                raise RuntimeError(f"a process that rendered sample clips ended early ({event}); run the command again")
            yield event.value


def _write_clip(sample: SampleClips, folder: Path, index: int, report: object = None) -> tuple[int, tuple[str, ...]]:
    import numpy as np

    clip = sample.render(index)
    with atomic_path(folder / "clips" / f"{sample.name(index)}.mp4", durable=False) as temporary:
        write_mp4(temporary, clip.pictures, clip.sound, frame_rate=FRAME_RATE, rate=RATE)
    return index, write_captions(clip.setting, np.random.default_rng([sample.seed, index, CAPTIONS]))
