"""Speed and memory of `aadml extract`: processes, constant memory, and the complete Inception path against its parts.

Usage: python scripts/bench/extraction.py [workers] [memory] [inception] [both] [long] [precision]
          [--manifest M.csv] [--clips N]

workers    wall time of the job without weights, with one and with two processes in turn, everything included
memory     peak memory of all processes together during a job of 2,000 clips
long       processor time of a clip of 20 minutes, of its first 300 seconds, and of decoding the whole clip
inception  the complete path on 720p video against decoding alone and the network alone, in the same run
both       mp4 to VGGish and Inception-V3 against a plain loop of PyAV and torch, in one thread; then their networks in
           one thread whose kernels use two processors, and in two threads of one processor each
precision  Inception-V3 with random weights in float32 and bfloat16 on 200 sample clips: the error of the features, and
           test MAP of trainings of both files, five seeds each

Without --manifest, clips are rendered (for the first two parts: short clips of 112 x 112 pixels, repeated under new
names).
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np

import aadml
from aadml.feature_extraction.backbones import Extractor, extractor
from aadml.feature_extraction.engines.decoding_workers import DecodingSettings, Task, Wanted, decode_all
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.jobs.extract import execute
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.manifest import Manifest, Row, read_manifest
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Limits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["workers", "memory", "inception"])
    parser.add_argument("--manifest", help="a manifest to measure with, instead of rendered clips")
    parser.add_argument("--clips", type=int, default=2000, help="how many clips the weight-free jobs have")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--videos", type=int, default=12, help="how many 720p videos of ten seconds")
    arguments = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        manifest = clips(folder, arguments.manifest, arguments.clips)
        for part in arguments.parts:
            {
                "workers": workers,
                "memory": memory,
                "inception": inception,
                "both": both,
                "long": long,
                "precision": precision,
            }[part](folder, manifest, arguments)


def workers(folder: Path, manifest: Manifest, arguments: argparse.Namespace) -> None:
    times: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(arguments.rounds):
        for count in times:
            output = folder / f"workers-{turn}-{count}.h5"
            times[count].append(timed(partial(job, manifest, output, count)))
    one, two = (statistics.median(each) for each in times.values())
    print(
        f"workers: {len(manifest.rows)} clips, one process {one:.2f} s, two {two:.2f} s: {one / two:.2f} times as fast"
    )


def memory(folder: Path, manifest: Manifest, arguments: argparse.Namespace) -> None:
    samples: list[tuple[int, float]] = []
    done, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            samples.append((done[0], resident()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    job(manifest, folder / "memory.h5", 2, lambda count, failed: done.__setitem__(0, count))
    stop.set()
    watcher.join()
    total = len(manifest.rows)
    for share in range(4):
        low, high = total * share // 4, total * (share + 1) // 4
        peak = max((size for count, size in samples if low <= count <= high and count), default=float("nan"))
        print(f"memory: clips {low:>5} to {high:>5}: peak {peak:.0f} MB (this process and its two decoding processes)")


def inception(folder: Path, manifest: Manifest, arguments: argparse.Namespace) -> None:
    import torch

    path = folder / "720p.mp4"
    render(path, size=(1280, 720), seconds=10, frames_per_second=25, noise=12)
    one = extractor("inception-v3", "visual", {"weights": "untrained"})
    wanted = {"visual": Wanted(one.inputs, one.prepare, one.minimum_seconds)}
    cores = len(os.sched_getaffinity(0))
    prepared: list[np.ndarray] = []

    def decoding() -> None:
        tasks = (Task(number, {"visual": str(path)}) for number in range(arguments.videos))
        for _, parts in decode_all(
            tasks, DecodingSettings(wanted, 600, Limits()), clips=arguments.videos, workers=cores
        ):
            prepared.append(parts[0].prepared)

    def network() -> None:
        assert one.describe is not None
        for start in range(0, len(prepared), one.batch_clips):
            one.describe(prepared[start : start + one.batch_clips])

    rows = tuple(Row(str(n), {"visual": str(path), "audio": ""}, "x", "train", {}) for n in range(arguments.videos))
    videos = Manifest("", rows, ("x",))
    bare_decoding = timed(decoding)
    network()  # the first call chooses kernels
    bare_network = timed(network)
    whole = timed(lambda: execute(ExtractionPlan(videos, folder / "whole.h5", [one], workers=cores)))
    share = (bare_decoding + bare_network) / whole
    print(
        f"inception: {arguments.videos} videos of 10 s in 720p, {torch.get_num_threads()} threads: decoding "
        f"{bare_decoding:.2f} s, network {bare_network:.2f} s, whole path {whole:.2f} s: {share:.2f} of what both allow"
    )


def both(folder: Path, manifest: Manifest, arguments: argparse.Namespace) -> None:
    import torch

    from aadml.feature_extraction.backbones.inception_v3 import InceptionV3
    from aadml.feature_extraction.backbones.vggish import VGGish
    from aadml.feature_extraction.frontends.inference import seeded

    path = folder / "320x240.mp4"
    render(path, size=(320, 240), seconds=10, frames_per_second=25, noise=12)
    ones = [extractor("vggish", "audio", {"weights": "untrained"})]
    ones.append(extractor("inception-v3", "visual", {"weights": "untrained"}))
    media = {"audio": str(path), "visual": str(path)}
    videos = Manifest("", tuple(Row(str(n), media, "x", "train", {}) for n in range(arguments.videos)), ("x",))
    torch.set_num_threads(1)  # waiting threads are busy too, and would count
    networks = {
        "audio": seeded(VGGish).eval(),
        "visual": seeded(InceptionV3).eval(),
    }
    plain_features = [plain(path, networks) for _ in range(2)][-1]  # the first call chooses kernels
    costs: dict[str, list[tuple[float, float]]] = {"aadml extract": [], "plain loop": []}
    for turn in range(arguments.rounds):
        output = folder / f"both-{turn}.h5"
        costs["aadml extract"].append(cost(partial(execute, ExtractionPlan(videos, output, ones, workers=1))))
        costs["plain loop"].append(cost(lambda: [plain(path, networks) for _ in videos.rows]))
    found = read_features(folder / "both-0.h5").features
    apart = {m: float(np.abs(found[m][0] - plain_features[m]).max() / np.abs(found[m][0]).max()) for m in found}
    for name, each in costs.items():
        wall, used = (min(one[part] for one in each) / arguments.videos for part in (0, 1))
        print(f"both: {name}: {wall:.2f} s a clip on the clock, {used:.2f} s of processor time (best of each)")
    print("both: largest difference from the loop, of the largest value: " + str(apart))
    inputs = (((960, 64), np.float32), ((10, 299, 299, 3), np.uint8))
    for one, (shape, kind) in zip(ones, inputs, strict=True):
        describers(one, np.full(shape, 7, kind))


def plain(path: Path, networks: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Describe one clip by a plain loop: decode the complete clip, then apply each network to its modality."""
    import torch

    from aadml.feature_extraction.backbones.inception_v3 import network_input
    from aadml.feature_extraction.backbones.vggish import vggish_patches
    from aadml.feature_extraction.frontends.log_mel import VGGISH, log_mel

    with av.open(str(path)) as container:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=16_000)
        blocks = [b.to_ndarray()[0] for frame in container.decode(audio=0) for b in resampler.resample(frame)]
    with av.open(str(path)) as container:
        frames = [f for number, f in enumerate(container.decode(video=0)) if number % 25 == 0]
    pictures = np.stack([cv2.resize(f.to_ndarray(format="rgb24"), (299, 299)) for f in frames])
    with torch.inference_mode():
        sound = networks["audio"](vggish_patches(log_mel(torch.from_numpy(np.concatenate(blocks)), VGGISH)))
        seen = networks["visual"](network_input(torch.from_numpy(pictures), transform_input=True))
    return {"audio": sound.mean(0).numpy(), "visual": seen.mean(0).numpy()}


def describers(one: Extractor, clip: np.ndarray) -> None:
    """Describe eight clips by one thread whose kernels use two processors, and by two threads of one processor each."""
    import torch

    assert one.describe is not None
    describe, taken = one.describe, {}
    for threads in (1, 2, 1, 2):
        torch.set_num_threads(2 // threads)
        with ThreadPoolExecutor(threads) as pool:
            taken[threads] = min(taken.get(threads, 1e9), timed(lambda p=pool: list(p.map(describe, [[clip] * 4] * 2))))
    torch.set_num_threads(2)
    print(f"both: {one.name}, eight clips: one describer {taken[1]:.2f} s, two {taken[2]:.2f} s")


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall time and processor time of `work`, including the processes that it starts."""

    def used() -> float:
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    before = used()
    return timed(work), used() - before


def long(folder: Path, manifest: Manifest, arguments: argparse.Namespace) -> None:
    whole, part, inputs = folder / "20 minutes.mp4", folder / "5 minutes.mp4", extractor("hog-color", "visual").inputs
    render(whole, size=(112, 112), seconds=1200, frames_per_second=10, noise=4)
    render(part, size=(112, 112), seconds=300, frames_per_second=10, noise=4)

    def everything() -> None:
        with av.open(str(whole)) as container:
            for frame in container.decode(video=0):
                frame.to_ndarray(format="rgb24")

    costs = {}
    for name, work in {
        "20 minutes": partial(decode, str(whole), inputs, Limits(), 0.0),
        "5 minutes": partial(decode, str(part), inputs, Limits(), 0.0),
        "every frame of 20 minutes": everything,
    }.items():
        begin = time.process_time()
        work()
        costs[name] = time.process_time() - begin
    kept = len(decode(str(whole), inputs, Limits(), 0.0).values)
    found = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in costs.items())
    print(f"long: {kept} frames are kept; processor time: {found}")


def precision(folder: Path, manifest: Manifest, arguments: argparse.Namespace) -> None:
    sample = aadml.sample_data(folder / "sample")
    values: dict[str, np.ndarray] = {}
    maps: dict[str, list[float]] = {}
    for kind in ("float32", "bfloat16"):
        path = folder / f"{kind}.h5"
        options = {"visual": {"weights": "untrained", "precision": kind}}
        aadml.extract(sample, path, audio="log-mel", visual="inception-v3", options=options)
        splits = aadml.read(path)
        values[kind] = np.concatenate([split["visual"].numpy() for split in (splits.train, splits.valid, splits.test)])
        runs = [aadml.fit(path, loss="triplet", epochs=30, seed=seed, runs=folder / "runs") for seed in range(5)]
        maps[kind] = [aadml.evaluate(model, data=path).map_mean for model in runs]
    exact, rounded = values.values()
    error = np.linalg.norm(rounded - exact) / np.linalg.norm(exact)
    lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(rounded, axis=1)
    differences = np.subtract(maps["bfloat16"], maps["float32"])
    cosine = ((exact * rounded).sum(axis=1) / lengths).min()
    print(f"precision: relative error {error:.2%}, smallest cosine {cosine:.5f}; test MAP, five seeds:")
    print(f"float32 {np.mean(maps['float32']):.4f}, bfloat16 minus float32 {differences.mean():+.4f} (mean)")
    print(f"largest difference {max(differences, key=abs):+.4f}")


def job(manifest: Manifest, output: Path, count: int, progress: Callable[[int, int], None] | None = None) -> None:
    extractors = [extractor("log-mel", "audio"), extractor("hog-color", "visual")]
    outcome = execute(ExtractionPlan(manifest, output, extractors, workers=count), progress)
    if outcome.failures:
        sys.exit(f"{len(outcome.failures)} clips failed: {outcome.failures[0]}")


def clips(folder: Path, given: str | None, count: int) -> Manifest:
    """Return the clips of a manifest, or fifty rendered clips, repeated under new names up to `count`."""
    if given:
        rows = list(read_manifest(given).rows)[:count]
    else:
        rows = []
        for number in range(min(count, 50)):
            path = folder / f"{number}.mp4"
            render(path, size=(112, 112), seconds=1.0 + number % 14 / 10, frames_per_second=10, noise=number % 5)
            rows.append(Row(str(number), {"audio": str(path), "visual": str(path)}, str(number % 10), "train", {}))
    more = [Row(f"{n}", rows[n % len(rows)].media, rows[n % len(rows)].label, "train", {}) for n in range(count)]
    return Manifest(given or "rendered", tuple(more), tuple(sorted({row.label for row in more})))


def render(path: Path, *, size: tuple[int, int], seconds: float, frames_per_second: int, noise: int) -> None:
    generator = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=frames_per_second)
        video.width, video.height = size
        video.pix_fmt = "yuv420p"
        sound = container.add_stream("aac", rate=16_000)
        sound.layout = "mono"
        for number in range(round(seconds * frames_per_second)):
            pixels = np.full((size[1], size[0], 3), 60, np.uint8)
            pixels[:, (number * 7) % size[0] :] = 180
            pixels += generator.integers(0, noise + 1, pixels.shape, dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, frames_per_second)
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
        wave = 0.3 * np.sin(np.arange(round(seconds * 16_000)) * 0.2)[None].astype(np.float32)
        block = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
        block.sample_rate, block.pts, block.time_base = 16_000, 0, Fraction(1, 16_000)
        container.mux(sound.encode(block))
        container.mux(sound.encode(None))


def resident() -> float:
    """Return the memory of this process and its child processes in MB."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return sum(resident_of(process) for process in ["self", *children])


def resident_of(process: str) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # the process has just ended
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
