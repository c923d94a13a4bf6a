"""Share of matrix products in one training step of AADML at the size of AVE (3 x 1,024, batch 200).

Processor milliseconds, minimum and median, alternating in one process: our step in float32 and in bfloat16; our step
with the masks of `nn.Dropout`; the same step in plain torch (nn.Sequential, nn.Dropout, fused Adam, autocast) with our
losses; the bound, two or three matrix products per layer of the encoders; and the other parts of a step: the losses,
the masks, Adam, and the conversions to and from bfloat16.
Usage: step.py [--loss triplet] [--rounds 60] [--threads 1] [--hidden 1024]
"""

import argparse
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.configuration.from_arguments import assemble
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import SHAPES
from aadml.layers.dropout import DropoutLayer
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.optimization import Optimization
from aadml.methods.training.precision import computed_in
from aadml.objective import Embedded
from aadml.runs.prepare import untrained_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", default="triplet", help="triplet, aa-triplet, ...")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=1024)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    splits = to_splits(SHAPES["ave"]())
    hidden = {"network.hidden": [arguments.hidden] * 3}
    config = assemble(config="aadml_ave", loss=arguments.loss, settings=hidden)
    model = untrained_model(config, splits, torch.device("cpu"))
    learner, train = model.method.learner, model.scaling.clips(splits.train)
    learner.eval()
    learner.before_epoch(train, Epoch("train", 0, 1))
    learner.train()
    optimization, player = Optimization(learner.players(), config.training), learner.players()["encoders"]
    plain = Plain(learner)
    copies = [nn.Parameter(p.detach().clone()) for p in player.parameters]
    for one in copies:
        one.grad = 1e-3 * torch.randn_like(one)
    unfused = torch.optim.Adam(copies, lr=1e-4, fused=False)

    def ours(batch: Batch, precision: str = "float32") -> None:
        with computed_in(precision, learner):
            optimization.step("encoders", player, batch)

    def with_old_masks(batch: Batch) -> None:
        cheap, DropoutLayer.forward = DropoutLayer.forward, lambda self, x: F.dropout(x, self.share, self.training)
        ours(batch)
        DropoutLayer.forward = cheap

    ways = {
        "ours, float32": ours,
        "ours, float32, masks of nn.Dropout": with_old_masks,
        "ours, bfloat16": lambda batch: ours(batch, "bfloat16"),
        "plain torch, float32": lambda batch: plain.step(batch, None),
        "plain torch, bfloat16": lambda batch: plain.step(batch, torch.bfloat16),
        "products, float32": lambda batch: products(learner, batch, torch.float32),
        "products, bfloat16": lambda batch: products(learner, batch, torch.bfloat16),
        "losses": lambda batch: losses(learner, batch),
        "masks": lambda batch: masks(learner, batch),
        "Adam, fused": lambda batch: optimization._optimizers["encoders"].step(),
        "Adam, not fused": lambda batch: unfused.step(),
        "conversions": lambda batch: conversions(learner),
    }
    print(f"{arguments.loss}, 3 x {arguments.hidden}, batch 200, {arguments.threads} thread(s); "
          f"load {os.getloadavg()[0]:.1f}")  # fmt: skip
    report(ways, lambda draws: batch_of(train, draws), arguments.rounds)


def report(ways: dict[str, Callable[[Batch], object]], batches, rounds: int) -> None:
    """Time every variant on the same batches alternately; print minimum and median."""
    draws = torch.Generator().manual_seed(0)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 3):
        batch = batches(draws)
        for name, way in ways.items():
            started = time.process_time()
            way(batch)
            if number >= 3:
                seconds[name].append(1e3 * (time.process_time() - started))
    for name, all_ in seconds.items():
        print(f"{name:36} {min(all_):7.1f} {median(all_):7.1f} ms")


def batch_of(train, draws: torch.Generator, clips: int = 200) -> Batch:
    rows = torch.randperm(len(train), generator=draws)[:clips]
    features = {m: train[m][rows] for m in train.modalities}
    return Batch(features, train.labels[rows], rows, draws, Epoch("train", 0, 1))


class Plain:
    """The encoders in plain torch with their optimizer; the losses are those of the learner."""

    def __init__(self, learner) -> None:
        self.learner = learner
        self.encoders = {m: _sequential(one) for m, one in learner.encoders.items()}
        others = learner.objective.parameters()
        parameters = [p for one in self.encoders.values() for p in one.parameters()]
        self.optimizer = torch.optim.Adam([*parameters, *others], lr=1e-4, fused=True)

    def step(self, batch: Batch, reduced: torch.dtype | None) -> None:
        """Run a training step."""
        self.optimizer.zero_grad()
        with torch.autocast("cpu", reduced) if reduced else nullcontext():
            vectors = {m: self.encoders[m](values) for m, values in batch.features.items()}
        vectors = {m: values.float() for m, values in vectors.items()}
        learner = self.learner
        loss = sum(learner.label_loss(values, batch.labels) for values in vectors.values())
        embedded = Embedded(vectors, batch.labels, batch.index)
        loss = loss + learner.objective(embedded, batch.generator, learner._encode)["loss"]
        loss.backward()
        self.optimizer.step()


def _sequential(encoder) -> nn.Sequential:
    modules: list[nn.Module] = []
    for module in encoder.hidden:
        if isinstance(module, nn.Linear):
            modules.append(nn.Linear(module.in_features, module.out_features))
        else:
            modules.append(nn.Dropout(module.share) if isinstance(module, DropoutLayer) else module)
    return nn.Sequential(*modules, nn.Linear(encoder.predicted.in_features, encoder.predicted.out_features))


def products(learner, batch: Batch, kind: torch.dtype) -> None:
    """Compute the products of a step: forward, and the gradients of weights and of all inputs except the first."""
    for modality, encoder in learner.encoders.items():
        values: Tensor = batch.features[modality].to(kind)
        linear = [m for m in [*encoder.hidden, encoder.predicted] if isinstance(m, nn.Linear)]
        for number, one in enumerate(linear):
            weight = _weights(one, kind)
            following = values @ weight.T
            following.T @ values
            if number:
                following @ weight
            values = following


def losses(learner, batch: Batch) -> None:
    """Compute the losses of random vectors, and their gradients."""
    classes = learner.encoders["audio"].predicted.out_features
    vectors = {m: torch.rand(len(batch.labels), classes, requires_grad=True) for m in batch.features}
    loss = sum(learner.label_loss(values, batch.labels) for values in vectors.values())
    embedded = Embedded(vectors, batch.labels, batch.index)
    (loss + learner.objective(embedded, batch.generator, learner._encode)["loss"]).backward()


def masks(learner, batch: Batch) -> None:
    """Apply dropout masks to every hidden layer."""
    for encoder in learner.encoders.values():
        for linear, _, layer in zip(*[iter(encoder.hidden)] * 3, strict=True):
            layer(torch.empty(len(batch.labels), linear.out_features))


def conversions(learner) -> None:
    """Convert the weights of the hidden layers to bfloat16, and tensors of the same shapes to float32."""
    for encoder in learner.encoders.values():
        for linear in encoder.hidden:
            if isinstance(linear, nn.Linear):
                linear.weight.detach().bfloat16().float()


def _weights(layer: nn.Linear, kind: torch.dtype, known: dict[tuple[int, torch.dtype], Tensor] = {}) -> Tensor:  # noqa: B006
    """Return the weights of a layer in a type, converted once."""
    return known.setdefault((id(layer), kind), layer.weight.detach().to(kind))


if __name__ == "__main__":
    main()
