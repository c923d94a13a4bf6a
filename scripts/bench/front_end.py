"""Speed of the log-mel front end and of the networks, compared with a peer, in one process.

Usage: python scripts/bench/front_end.py [--threads N]. Prints medians over alternating repetitions, and ratios.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch.nn import functional as F

from aadml.feature_extraction.backbones.inception_v3 import InceptionV3, folded, network_input
from aadml.feature_extraction.backbones.vggish import VGGish
from aadml.feature_extraction.frontends.inference import seeded
from aadml.feature_extraction.frontends.log_mel import CRNN, PANNS, VGGISH, LogMelSettings, log_mel

PAUSE, IN_A_ROW = 0.5, 3
"""Seconds between candidates, and number of timed calls in a row, after one warm-up call.

After a matrix product, the threads of OpenBLAS spin for a while and would take a processor from the next candidate.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repetitions", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"{arguments.threads} threads, torch {torch.__version__}, numpy {np.__version__}")
    with torch.inference_mode():
        front_end(arguments.repetitions)
        networks(max(3, arguments.repetitions // 5))


def front_end(repetitions: int) -> None:
    """Time a minute of sound: our front end, and that of VGGish's code (NumPy, float64, new filters for each call)."""
    sound = np.random.default_rng(0).normal(0.0, 0.1, 60 * VGGISH.sample_rate)
    single = torch.from_numpy(sound.astype(np.float32))
    difference = np.abs(log_mel(single, VGGISH).numpy() - numpy_way(sound, VGGISH)).max()
    times = in_turn(
        {
            "numpy way of the original": lambda: numpy_way(sound, VGGISH),
            "numpy way, filters kept": lambda: numpy_way(sound, VGGISH, numpy_filters(VGGISH)),
            "ours, float32": lambda: log_mel(single, VGGISH),
        },
        repetitions,
    )
    show("log-mel, VGGish, 60 s of sound", times, "numpy way of the original")
    print(f"  largest difference {difference:.1e}")
    for name, settings in (("PANNs", PANNS), ("CRNN", CRNN)):
        other = torch.randn(60 * settings.sample_rate)
        times = in_turn({"ours, float32": partial(log_mel, other, settings)}, repetitions)
        show(f"log-mel, {name}, 60 s of sound", times, "ours, float32")


def numpy_way(samples: np.ndarray, settings: LogMelSettings, filters: np.ndarray | None = None) -> np.ndarray:
    """Compute `mel_features` by its description: strided frames, window, rfft, magnitude, matrix product, logarithm."""
    count = 1 + (len(samples) - settings.window) // settings.hop
    strides = (samples.strides[0] * settings.hop, samples.strides[0])
    frames = np.lib.stride_tricks.as_strided(samples, (count, settings.window), strides)
    window = 0.5 - 0.5 * np.cos(2 * np.pi / settings.window * np.arange(settings.window))
    magnitude = np.abs(np.fft.rfft(frames * window, settings.fft))
    return np.log(magnitude @ (numpy_filters(settings) if filters is None else filters) + settings.offset)


def numpy_filters(settings: LogMelSettings) -> np.ndarray:
    """Return the triangular filters, computed band by band."""
    points = 1127.0 * np.log(1.0 + np.linspace(0.0, settings.sample_rate / 2, settings.fft // 2 + 1) / 700.0)
    ends = 1127.0 * np.log(1.0 + np.array([settings.low, settings.high]) / 700.0)
    corners = np.linspace(*ends, settings.bands + 2)
    filters = np.empty((len(points), settings.bands))
    for band in range(settings.bands):
        left, middle, right = corners[band : band + 3]
        filters[:, band] = np.maximum(
            0, np.minimum((points - left) / (middle - left), (right - points) / (right - middle))
        )
    filters[0] = 0.0
    return filters


def networks(repetitions: int) -> None:
    """Time batches as the extractors form them; the peers are the same networks without optimizations."""
    frames = torch.randint(0, 256, (8, 299, 299, 3), dtype=torch.uint8)
    images = network_input(frames, transform_input=True)
    rows = images.contiguous()
    plain = seeded(InceptionV3).eval()
    lined = seeded(InceptionV3).eval().to(memory_format=torch.channels_last)
    ours = folded(seeded(InceptionV3).eval()).to(memory_format=torch.channels_last)

    def half() -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return ours(images)

    times = in_turn(
        {
            "plain network, channels first": lambda: plain(rows),
            "plain network, channels last": lambda: lined(images),
            "ours, float32": lambda: ours(images),
            "ours, bfloat16": half,
        },
        repetitions,
    )
    show("Inception-V3, 299 x 299", times, "plain network, channels first", len(frames), "images/s")
    cosine = F.cosine_similarity(ours(images), half().float()).min()
    print(f"  smallest cosine between float32 and bfloat16 features {cosine:.6f}")
    patches = torch.randn(16, 96, 64)
    network = seeded(VGGish).eval()
    times = in_turn({"ours, float32": lambda: network(patches)}, repetitions)
    show("VGGish", times, "ours, float32", len(patches), "patches/s")


def in_turn(candidates: dict[str, Callable[[], object]], repetitions: int) -> dict[str, list[tuple[float, float]]]:
    """Return wall and processor times of alternating candidates, so that other work affects all candidates equally."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for _ in range(-(-repetitions // IN_A_ROW)):
        for name, candidate in candidates.items():
            time.sleep(PAUSE)
            candidate()
            for _ in range(IN_A_ROW):
                wall, processor = time.perf_counter(), time.process_time()
                candidate()
                times[name].append((time.perf_counter() - wall, time.process_time() - processor))
    return times


def show(title: str, times: dict[str, list[tuple[float, float]]], base: str, items: int = 0, unit: str = "") -> None:
    """Print medians and minima of wall time, medians of processor time (all cores together), and ratios of medians."""
    print(title)
    reference = medians(times[base])
    for name, taken in times.items():
        (wall, processor), best = medians(taken), min(wall for wall, _ in taken)
        line = f"  {name:<32} wall {wall * 1e3:9.2f} ms (best {best * 1e3:8.2f}), processor {processor * 1e3:9.2f} ms"
        line += f", {items / wall:7.1f} {unit}" if items else ""
        if name != base:
            line += (
                f"; {reference[0] / wall:.2f} x as fast as {base}, {reference[1] / processor:.2f} x by processor time"
            )
        print(line)


def medians(taken: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(wall for wall, _ in taken), statistics.median(processor for _, processor in taken)


if __name__ == "__main__":
    main()
