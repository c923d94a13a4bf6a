"""Training on many pairs without labels: a step, the graph of agreeing neighbors, the score; processor time and memory.

python scripts/bench/pairs.py [--clips 100000] [--dimensions 128] [--threads 1]
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import torch

import aadml
from aadml.comparison.clips import Clips, Splits
from aadml.proxies.graph import agreeing_neighbors
from aadml.retrieval.evaluation import mean_figure

T = TypeVar("T")
LATENT, SCORED = 32, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    splits = drawn(options.clips, options.dimensions)
    steps = -(-options.clips // 200)
    model, seconds = timed(lambda: trained(splits))
    print(f"an epoch of {steps} steps, validation and test of {SCORED} pairs each: {seconds:.1f} s")
    vectors = [model.embed_features(splits.train[m], m) for m in model.modalities]
    _, seconds = timed(lambda: agreeing_neighbors(vectors, k=10))
    print(f"agreeing neighbors, k = 10, of {options.clips} x {vectors[0].shape[1]}: {seconds:.1f} s")
    recall, seconds = timed(lambda: mean_figure(model.embed_clips(splits.valid), "recall@10"))
    print(f"recall@10 of {SCORED} validation pairs, {recall:.3f}: {seconds:.2f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def drawn(count: int, dimensions: int) -> Splits:
    """Generate pairs that share a few directions."""
    generator = torch.Generator().manual_seed(0)
    shared = torch.randn(count + 2 * SCORED, LATENT, generator=generator)
    features = {
        modality: shared @ torch.randn(LATENT, dimensions, generator=generator)
        + 2 * torch.randn(len(shared), dimensions, generator=generator)
        for modality in ("audio", "visual")
    }
    clips = Clips.of(None, **features)
    rows = torch.arange(len(shared)).split([count, SCORED, SCORED])
    return Splits(*(clips.select(part) for part in rows))


def trained(splits: Splits) -> aadml.Model:
    """Train one epoch without neighbors."""
    return aadml.fit(splits, config="pairs", epochs=1, settings={"training.train_map": 0})


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of `work`, and its processor seconds."""
    began = time.process_time()
    return work(), time.process_time() - began


if __name__ == "__main__":
    main()
