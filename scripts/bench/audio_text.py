"""Audio-text training: memory of epochs over waveforms and of the relevance of a batch, and waiting time of steps.

Usage: python scripts/bench/audio_text.py [--clips 300] [--seconds 10] [--threads 2]

Each part runs in a separate process. Waveforms: `--clips` wav files at 44.1 kHz are decoded to 32 kHz in batches of 32,
for two epochs. The peak after the first tenth of the first epoch is compared with the peak at the end. Relevance: 32
clips of 1,500 frames are compared with each other in 300 dimensions, without and with gradients. Waiting: the second of
two epochs of a narrow `audio-text` with batches of 30; the share of wall time in which steps wait for spectrograms.
Spectrograms are computed every time, cached on disk, cached in memory, or prefetched.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

from memory import peak_bytes


def peak_mib():
    return peak_bytes() / 2**20


def written(folder, arguments):
    import numpy as np
    import torch

    from aadml.data.sources.waveforms import Waveforms

    paths = []
    for i in range(arguments.clips):
        path = Path(folder) / f"{i}.wav"
        with wave.open(str(path), "wb") as file:
            samples = arguments.seconds * 44_100
            file.setparams((1, 2, 44_100, samples, "NONE", ""))
            file.writeframes(np.random.default_rng(i).integers(-9000, 9000, samples).astype("<i2").tobytes())
        paths.append(str(path))
    return Waveforms(tuple(paths), torch.arange(arguments.clips))


def waveforms(arguments):
    import torch

    with tempfile.TemporaryDirectory() as folder:
        source = written(folder, arguments)
        started, early, done = time.perf_counter(), 0.0, 0
        for epoch in range(2):
            order = torch.randperm(arguments.clips, generator=torch.Generator().manual_seed(epoch))
            for rows in order.split(32):
                source.batch(rows)
                done += len(rows)
                if not early and done >= max(32, arguments.clips // 10):
                    early = peak_mib()
    seconds = time.perf_counter() - started
    print(json.dumps({"early_peak_mib": round(early), "peak_mib": round(peak_mib()),
                      "clips_a_second": round(done / seconds, 1)}))  # fmt: skip


WAITING = {
    "made each time": {"memory_mib": 0, "disk_mib": 0},
    "on disk": {"memory_mib": 0},
    "in memory": {"disk_mib": 0},
}


def waiting(arguments):
    """Train, and sum the time from the end of each step until the spectrograms of the next step are ready."""
    import torch

    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        source = written(folder, arguments)
        os.environ["AADML_CACHE"] = folder
        for name, loading in WAITING.items():
            waited, processor, seconds = epoch_of(source, loading, arguments.clips)
            share = round(100 * waited / seconds)
            print(json.dumps({"spectrograms": name, "seconds_waited": round(waited, 2), "seconds": round(seconds, 2),
                              "percent": share, "own_processor_seconds": round(processor, 1),
                              "load": round(os.getloadavg()[0], 1)}), flush=True)  # fmt: skip


def epoch_of(source, loading, clips):
    import torch

    from aadml.comparison.clips import Clips
    from aadml.data.sources.texts import Captions
    from aadml.methods import METHODS
    from aadml.methods.audio_text.options import CaptionedOptions, TowerOptions
    from aadml.methods.method import Context
    from aadml.methods.training import loop as training
    from aadml.methods.training.session import Session

    made, steps, waited, marks = training.on_device, training._Loop._steps, [], []

    def timed(function, *given):
        began = time.perf_counter()
        try:
            return function(*given)
        finally:
            waited.append(time.perf_counter() - began)

    def timed_steps(*given):
        waited.clear()
        began = time.process_time()
        means = steps(*given)
        marks[:] = [began, time.process_time()]
        return means

    training.on_device = lambda *given: timed(made, *given)
    training._Loop._steps = timed_steps
    try:
        torch.manual_seed(0)
        narrow = TowerOptions(audio="cnn10", audio_width=4, text_layers=1, text_dimension=64, dimension=64, hidden=64)
        settings = training.Training(epochs=2, batch=30)
        fitted = METHODS["audio-text"](
            Context({"audio": 0, "text": 0}, clips), settings, towers=narrow, captioned=CaptionedOptions(**loading)
        )
        words = Captions(tuple(f"clip number {i} of {clips}" for i in range(clips)))
        names = tuple(str(i) for i in range(clips))
        given = Clips({"audio": source, "text": words}, torch.arange(clips), names, names)
        session = Session()
        fitted.fit(given, given.select(torch.arange(0)), session)
    finally:
        training.on_device, training._Loop._steps = made, steps
    return sum(waited), marks[1] - marks[0], session.history[-1]["seconds"]


def relevance(arguments):
    import torch

    from aadml.comparison.frame_word import relevance as score

    torch.set_num_threads(arguments.threads)
    frames = torch.randn(32, 1500, 300, requires_grad=arguments.part == "relevance-gradient")
    lengths = torch.full((32,), 1500)
    before, started = peak_mib(), time.perf_counter()
    found = score(frames, lengths, frames, lengths)
    if found.requires_grad:
        found.sum().backward()
    seconds = round(time.perf_counter() - started, 1)
    print(json.dumps({"peak_mib": round(peak_mib()), "grown_mib": round(peak_mib() - before), "seconds": seconds}))


PARTS = {"waveforms": waveforms, "relevance": relevance, "relevance-gradient": relevance, "waiting": waiting}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--part", choices=PARTS, help="this one alone, in this process")
    arguments = parser.parse_args()
    if arguments.part:
        PARTS[arguments.part](arguments)
        return
    for part in PARTS:
        command = [sys.executable, __file__, *sys.argv[1:], "--part", part]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(part, done.stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
