"""Time and peak memory of curriculum batches at the size of AudioCaps, each kind in a separate process.

Usage: python scripts/bench/curriculum.py [--items 49274] [--dimension 1024] [--batch 32] [--threads 2] [--json]

The vectors form 200 clusters, and a tenth of the captions are copies of others. For hard batches, copies are kept in
different batches. The objective is printed per item; 1 corresponds to batches of unrelated items.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

from memory import peak_bytes

CASES = (("median", 0), ("easy", 40), ("hard", 0), ("hard", 40))


def child(arguments):
    """Build one partition and print its time, memory and objective."""
    import torch

    from aadml.data.captions.curriculum import objective, partition

    torch.set_num_threads(arguments.threads)
    generator = torch.Generator().manual_seed(0)
    centers = 0.6 * torch.randn(200, arguments.dimension, generator=generator)
    place = torch.randint(0, 200, (arguments.items,), generator=generator)
    vectors = torch.randn(arguments.items, arguments.dimension, generator=generator).add_(centers[place])
    captions = torch.randint(0, arguments.items, (arguments.items,), generator=generator)
    difficulty, sweeps = CASES[arguments.case]
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    batches = partition(vectors, arguments.batch, hard=difficulty == "hard", sweeps=sweeps, codes=[captions])
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF)
    result = {
        "difficulty": difficulty,
        "sweeps": sweeps,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "peak_gib": round(peak_bytes() / 2**30, 2),
        "objective_per_item": round(objective(vectors, batches) / batches.numel(), 4),
    }
    print(json.dumps(result))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=49_274)
    parser.add_argument("--dimension", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case is not None:
        child(arguments)
        return
    results = []
    for case in range(len(CASES)):
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--case", str(case)], check=True, capture_output=True, text=True
        )
        results.append(json.loads(done.stdout))
        if not arguments.json:
            print("  ".join(f"{key} {value}" for key, value in results[-1].items()), flush=True)
    if arguments.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
