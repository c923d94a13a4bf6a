"""Time of training several seeds as one batched job: a step of several cells, one after the other, and stacked.

The cells are seeds of one config at the size of AVE. Stacked training has the weights of all cells in one tensor per
layer, their products as one `bmm`, and one optimizer for all cells. The losses, whose triplets and selections differ
between cells, are computed cell by cell in both. Printed are processor milliseconds of one thread for all cells,
minimum and median, alternating. Usage: stack.py [--cells 5] [--loss triplet] [--rounds 60]
"""

import argparse
import os
import time
from functools import partial
from statistics import median

import torch
from torch import Tensor, nn

from aadml.configuration.from_arguments import assemble
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import SHAPES
from aadml.layers.dropout import DropoutLayer
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.optimization import Optimization, build_optimizer
from aadml.objective import Embedded
from aadml.runs.prepare import untrained_model

HIDDEN = ([64], [220], [220, 220], [1024, 1024, 1024])
CPU = torch.device("cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=5)
    parser.add_argument("--loss", default="triplet")
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    splits = to_splits(SHAPES["ave"]())
    print(f"{arguments.cells} cells, {arguments.loss}, batch 200; load {os.getloadavg()[0]:.1f}")
    print("hidden               one by one          stacked             of which not stackable   times")
    for hidden in HIDDEN:
        compare(splits, hidden, arguments)


def compare(splits, hidden: list[int], arguments: argparse.Namespace) -> None:
    """Time the steps of all cells in both ways, and the losses alone."""
    settings = {"network.hidden": hidden, "training.precision": "float32"}
    configs = [
        assemble(config="aadml_ave", loss=arguments.loss, seed=seed, settings=settings)
        for seed in range(arguments.cells)
    ]
    models = [untrained_model(one, splits, CPU) for one in configs]
    train = models[0].scaling.clips(splits.train)
    learners = [model.method.learner.train() for model in models]
    players = [learner.players()["encoders"] for learner in learners]
    alone = [Optimization(learner.players(), one.training) for learner, one in zip(learners, configs, strict=True)]
    stacked = Stacked(learners, configs[0].training)
    draws = torch.Generator().manual_seed(0)
    seconds: dict[str, list[float]] = {"one by one": [], "stacked": [], "losses": []}
    for _ in range(arguments.rounds):
        batches = [batch_of(train, draws) for _ in learners]
        ways = {
            "one by one": partial(one_by_one, alone, players),
            "stacked": stacked.step,
            "losses": stacked.losses_alone,
        }
        for name, way in ways.items():
            started = time.process_time()
            way(batches)
            seconds[name].append(time.process_time() - started)
    shown = {name: f"{1e3 * min(all_):7.1f} {1e3 * median(all_):7.1f}" for name, all_ in seconds.items()}
    ratio = median(seconds["one by one"]) / median(seconds["stacked"])
    print(f"{hidden!s:20} {shown['one by one']}     {shown['stacked']}     {shown['losses']}        {ratio:.2f}")


def one_by_one(alone, players, batches: list[Batch]) -> None:
    for optimization, player, batch in zip(alone, players, batches, strict=True):
        optimization.step("encoders", player, batch)


def batch_of(train, draws: torch.Generator) -> Batch:
    rows = torch.randperm(len(train), generator=draws)[:200]
    features = {m: train[m][rows] for m in train.modalities}
    return Batch(features, train.labels[rows], rows, draws, Epoch("train", 0, 1))


class Stacked:
    """The encoders of several learners as one: weights (s, inputs, outputs), one optimizer."""

    def __init__(self, learners, settings) -> None:
        self.learners = learners
        self.layers = {m: _stacked_layers([one.encoders[m] for one in learners]) for m in learners[0].encoders}
        parameters = [p for layers in self.layers.values() for pair in layers for p in pair]
        self.optimizer = build_optimizer(parameters, settings)
        self.dropout = DropoutLayer(0.1)

    def embed(self, batches: list[Batch]) -> dict[str, Tensor]:
        """Embed the batches of all cells: modality -> (s, b, C)."""
        found = {}
        for modality, layers in self.layers.items():
            values = torch.stack([batch.features[modality] for batch in batches])
            for number, (weight, bias) in enumerate(layers):
                values = torch.baddbmm(bias, values, weight)
                if number < len(layers) - 1:
                    values = self.dropout(values.tanh())
            found[modality] = values
        return found

    def losses_alone(self, batches: list[Batch]) -> None:
        """Compute the losses of random vectors, and their gradients."""
        classes = len(self.learners[0].encoders["audio"].predicted.bias)
        vectors = {m: torch.rand(len(batches), 200, classes, requires_grad=True) for m in self.layers}
        self.losses(batches, vectors).backward()

    def losses(self, batches: list[Batch], vectors: dict[str, Tensor]) -> Tensor:
        """Sum the losses of all cells."""
        total = []
        for number, (learner, batch) in enumerate(zip(self.learners, batches, strict=True)):
            own = {m: values[number] for m, values in vectors.items()}
            label = sum(learner.label_loss(values, batch.labels) for values in own.values())
            metric = learner.objective(Embedded(own, batch.labels, batch.index), batch.generator)["loss"]
            total.append(label + metric)
        return torch.stack(total).sum()

    def step(self, batches: list[Batch]) -> None:
        """Run a training step of all cells."""
        self.optimizer.zero_grad(set_to_none=True)
        self.losses(batches, self.embed(batches)).backward()
        self.optimizer.step()


def _stacked_layers(encoders) -> list[tuple[nn.Parameter, nn.Parameter]]:
    linear = [[m for m in [*one.hidden, one.predicted] if isinstance(m, nn.Linear)] for one in encoders]
    return [
        (
            nn.Parameter(torch.stack([one.weight.detach().T for one in layer])),
            nn.Parameter(torch.stack([one.bias.detach()[None] for one in layer])),
        )
        for layer in zip(*linear, strict=True)
    ]


if __name__ == "__main__":
    main()
