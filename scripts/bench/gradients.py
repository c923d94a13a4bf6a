"""Sums of gradients over processes: ours, PyTorch DDP, and one message after the backward pass, by turns.

Usage: torchrun --nproc-per-node 2 scripts/bench/gradients.py [--rounds 9] [--batch 128]

Networks of linear layers with ReLU, seed 0, random inputs, one thread for each process. A step is a forward and a
backward pass with the sum. The table has wall milliseconds of a step in the first process (minimum, median), and
whether the gradients are those of the single message to the byte.
"""

import argparse
import os
import subprocess
import time
from statistics import median

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from aadml.comparison.processes import group
from aadml.comparison.processes.gradients import summed_gradients

SHAPES = ((64, 3), (1024, 3), (2048, 12))  # width and number of layers


def in_buckets(network: nn.Module, rows: Tensor) -> None:
    with summed_gradients(list(network.parameters())):
        network(rows).square().sum().backward()


def in_one_message(network: nn.Module, rows: Tensor) -> None:
    network(rows).square().sum().backward()
    gradients = [weight.grad for weight in network.parameters()]
    sums = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(sums)
    for gradient, part in zip(gradients, sums.split([one.numel() for one in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def by_ddp(network: nn.Module, rows: Tensor) -> None:
    (network(rows).square().sum() * distributed.get_world_size()).backward()  # DDP returns the mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=128)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with group.joined(), group.divided():
        if group.is_first():
            commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], text=True).strip()
            print(f"commit {commit}, seed 0, {group.count()} processes, load {os.getloadavg()[0]:.1f}\n")
            print("| layers | weights | ours, ms | one message, ms | DDP, ms | equal bytes |")
            print("|---|---:|---:|---:|---:|---|")
        for width, layers in SHAPES:
            torch.manual_seed(0)
            network = nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())])
            rows = torch.randn(given.batch, width)[group.own(given.batch)]
            steps = {in_buckets: network, in_one_message: network, by_ddp: DistributedDataParallel(network)}
            times = {step: [] for step in steps}
            for _ in range(given.rounds + 1):
                found = {}
                for step, called in steps.items():
                    network.zero_grad(set_to_none=True)
                    distributed.barrier()
                    begin = time.perf_counter()
                    step(called, rows)
                    times[step].append(1e3 * (time.perf_counter() - begin))
                    found[step] = [weight.grad.clone() for weight in network.parameters()]
            equal = all(map(torch.equal, found[in_buckets], found[in_one_message]))
            cells = [f"{min(values[1:]):.1f}, {median(values[1:]):.1f}" for values in times.values()]
            if group.is_first():
                count = sum(weight.numel() for weight in network.parameters())
                print(
                    f"| {layers} x {width:,} | {count:,} | {' | '.join(cells)} | {'yes' if equal else 'no'} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
