"""Memory of audio-text training: epochs over waveforms, and the relevance of a batch within audio.

Usage: python scripts/bench/audio_text.py [--clips 200] [--seconds 10] [--threads 2]

Each part runs in a process of its own. Waveforms: that many wav files at 44.1 kHz are decoded to 32 kHz in batches of
32, two epochs; the peak after the first tenth of the first epoch is compared with the peak at the end. Relevance: 32
clips of 1,500 frames against each other, 300 dimensions, without and with gradients.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

from memory import peak_bytes


def peak_mib():
    return peak_bytes() / 2**20


def waveforms(arguments):
    import numpy as np
    import torch

    from aadml.data.waveforms import Waveforms

    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i in range(arguments.clips):
            path = Path(folder) / f"{i}.wav"
            with wave.open(str(path), "wb") as file:
                samples = arguments.seconds * 44_100
                file.setparams((1, 2, 44_100, samples, "NONE", ""))
                file.writeframes(np.random.default_rng(i).integers(-9000, 9000, samples).astype("<i2").tobytes())
            paths.append(str(path))
        source = Waveforms(tuple(paths), torch.arange(arguments.clips))
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


PARTS = {"waveforms": waveforms, "relevance": relevance, "relevance-gradient": relevance}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
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
