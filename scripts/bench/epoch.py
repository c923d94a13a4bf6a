"""Share of the encoders' matrix products in one training epoch at the size of VEGAS.

One run measures the bare forward and backward passes of the encoders over the same batches, the bare forward pass that
fills the bank of the proxies, the score of the training clips (in every tenth epoch), and the whole epoch of the
training loop. Usage: epoch.py [--loss aa-triplet] [--rounds 3]
"""

import argparse
import platform
import time
from statistics import median

import torch

from aadml.comparison.clips import Splits
from aadml.configuration.from_arguments import assemble
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import SHAPES
from aadml.methods.training.session import Session
from aadml.methods.training.train_scores import train_scores
from aadml.runs.prepare import untrained_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", default="aa-triplet")
    parser.add_argument("--shape", default="vegas", choices=list(SHAPES))
    parser.add_argument("--k", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    whole = {"train": 22_482, "valid": 100} if arguments.shape == "vegas" else {}
    splits = to_splits(SHAPES[arguments.shape](**whole))
    config = assemble(
        config=f"aadml_{arguments.shape}", loss=arguments.loss, device=arguments.device,
        **{"proxy.k": arguments.k, "training.epochs": arguments.rounds + 1},
    )  # fmt: skip
    device = torch.device(arguments.device)
    print(f"{len(splits.train)} clips, batch {config.training.batch}, {arguments.loss}; {platform.machine()}, "
          f"{torch.get_num_threads()} threads, {device}")  # fmt: skip
    encoder = untrained_model(config, splits, device)
    bare = [passes(encoder.method.learner, splits, config.training.batch, device) for _ in range(arguments.rounds)]
    forward = [bank(encoder.method.learner, splits, device) for _ in range(arguments.rounds)]
    session = Session()
    train, none = encoder.scaling.clips(splits.train), splits.valid.select(torch.arange(0))
    encoder.method.fit(train, none, session)
    epoch = median(record["seconds"] for record in session.history[1:])
    again = [passes(encoder.method.learner, splits, config.training.batch, device) for _ in range(arguments.rounds)]
    scored = [scores(encoder.method.learner, train) for _ in range(arguments.rounds)]
    products, filling = median(bare + again), median(forward)
    needs_bank = arguments.loss.startswith("aa-")
    print(f"encoders, forward and backward       {products:8.3f} s")
    print(f"encoders, forward for the bank       {filling if needs_bank else 0:8.3f} s")
    print(f"whole epoch                          {epoch:8.3f} s")
    every = config.training.train_map
    print(f"MAP of the training clips            {median(scored):8.3f} s, every {every} epochs: "
          f"{median(scored) / every / epoch:.1%} of them")  # fmt: skip
    share = (products + (filling if needs_bank else 0)) / epoch
    print(f"share of the encoders                {share:8.2f}   (forward and backward alone {products / epoch:.2f})")


def passes(learner, splits: Splits, batch: int, device: torch.device) -> float:
    """Time only the forward and backward passes of the batches of one epoch."""
    learner.train()
    features = {m: splits.train.matrix(m).to(device) for m in splits.train.modalities}
    synchronize(device)
    started = time.perf_counter()
    for rows in torch.randperm(len(splits.train)).split(batch):
        learner.zero_grad(set_to_none=True)
        total = sum(learner.encoders[m](features[m][rows]).sum() for m in features)
        total.backward()
    synchronize(device)
    return time.perf_counter() - started


def bank(learner, splits: Splits, device: torch.device) -> float:
    """Time the forward pass over all training clips."""
    started = time.perf_counter()
    for modality in splits.train.modalities:
        learner.label_space(splits.train, modality)
    synchronize(device)
    return time.perf_counter() - started


def scores(learner, train) -> float:
    """Time the embedding of all training clips and their MAP."""
    started = time.perf_counter()
    train_scores(learner.embed_clips(train))
    return time.perf_counter() - started


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
