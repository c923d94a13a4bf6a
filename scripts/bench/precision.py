"""Effect of training in bfloat16 on MAP: the same seeds in both precisions, scored on the test clips.

Prints a line when a run ends, then the differences of each loss. One thread, the network of the paper and batch 200. A
processor without bfloat16 instructions multiplies bfloat16 twenty times as slowly as float32. With --emulated, the same
rounded numbers are multiplied and summed in float32 and each product is rounded once, as such instructions do.
Usage: precision.py FEATURES [--losses triplet aa-triplet] [--seeds 5] [--epochs 30] [--emulated]
"""

import argparse
from statistics import mean, stdev

import torch
from torch import Tensor

from aadml.configuration.from_arguments import assemble
from aadml.layers import linear
from aadml.methods.training.session import Session
from aadml.runs.prepare import prepare
from aadml.runs.scoring import TEST, score_model
from aadml.runs.train import fit_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("--losses", nargs="+", default=["triplet", "aa-triplet"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--emulated", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.emulated:
        check_emulation()
        linear._Product = Emulated
    for loss in arguments.losses:
        differences = []
        for seed in range(arguments.seeds):
            exact, rounded = (
                scored(arguments.features, loss, seed, arguments.epochs, precision)
                for precision in ("float32", "bfloat16")
            )
            differences.append(rounded - exact)
            print(f"{loss} seed {seed}: float32 {exact:.4f}, bfloat16 {rounded:.4f}", flush=True)
        spread = stdev(differences) if len(differences) > 1 else float("nan")
        print(f"{loss}: bfloat16 minus float32 {mean(differences):+.5f}, deviation {spread:.5f}")


class Emulated(torch.autograd.Function):
    """A product in bfloat16 and its gradients, computed in float32 and rounded once."""

    @staticmethod
    def forward(ctx, inputs: Tensor, weight: Tensor) -> Tensor:
        """Multiply inputs (b, d) by a weight (c, d) -> (b, c)."""
        ctx.save_for_backward(inputs, weight)
        return (inputs.float() @ weight.float().T).bfloat16()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return the gradients of the inputs, if required, and of the weight."""
        inputs, weight = ctx.saved_tensors
        wide = gradient.float()
        of_inputs = (wide @ weight.float()).bfloat16() if ctx.needs_input_grad[0] else None
        return of_inputs, (wide.T @ inputs.float()).bfloat16()


def check_emulation() -> None:
    """Compare the emulated product and gradients with those of torch; a few differ in the last digit."""
    torch.manual_seed(0)
    given = [torch.randn(200, 1024).bfloat16(), torch.randn(256, 1024).bfloat16(), torch.randn(200, 256).bfloat16()]
    sides = []
    for product in (linear._Product, Emulated):
        inputs, weight = (one.clone().requires_grad_() for one in given[:2])
        out = product.apply(inputs, weight)
        out.backward(given[2])
        sides.append((out.detach(), inputs.grad, weight.grad))
    parts = zip(("product", "gradient of inputs", "gradient of weight"), *sides, strict=True)
    for name, ours, theirs in parts:
        other = (ours != theirs).double().mean()
        apart = (ours.double() - theirs.double()).abs().max() / theirs.double().abs().max()
        print(
            f"emulated {name}: {100 * other:.2f} % of entries in another last place, {apart:.1e} of the largest apart"
        )


def scored(features: str, loss: str, seed: int, epochs: int, precision: str) -> float:
    """Train one run and return its mean MAP on the test clips."""
    settings = {"training.precision": precision, "training.train_map": 0}
    length = {"training.epochs": epochs}
    config = assemble(config="aadml_ave", data=features, loss=loss, seed=seed, settings=settings, **length)
    session, prepared = Session(), prepare(config)
    model = fit_model(prepared, session)
    return score_model(model, config, prepared.splits, session, session.seconds, TEST).map_mean


if __name__ == "__main__":
    main()
