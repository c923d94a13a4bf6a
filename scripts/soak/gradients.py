"""Compare the gradients of every trainable network with finite differences, in float64 and training mode.

    PYTHONPATH="$PWD" python scripts/soak/gradients.py [--seed N] [NAME ...] > docs/lab/soak/gradients.md

Prints the largest relative error of every network: over every tensor of weights and of inputs separately, over all of
them together, and over single numbers. Dropout and other draws start with the same seed at every evaluation.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from trainings import OF_SOUND, SETTINGS

from aadml.configuration.from_arguments import assemble
from aadml.data.sources.padding import Padded
from aadml.data.sources.texts import Captions
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.backbones.crnn import Crnn
from aadml.feature_extraction.backbones.inception_v3 import InceptionV3
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS, ConvBlock, ResidualBlock
from aadml.feature_extraction.backbones.vggish import VGGish
from aadml.feature_extraction.hub.bert import small_bert
from aadml.feature_extraction.layers.masking import masked_batch_norm, time_mask
from aadml.layers.linear import Linear
from aadml.layers.tanh import Tanh
from aadml.losses import LOSSES
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import ACTIVATIONS, layers
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import FineTuning
from aadml.methods.training.learner import Batch, Epoch, Learner
from aadml.model.files import build_method
from aadml.objective.recipes import RECIPES
from aadml.proxies import PROXIES
from aadml.runs.prepare import untrained_model
from tests.feature_extraction.hub.tiny import NETWORKS, written

TOLERANCE = 1e-5
STEPS = (1e-6, 1e-5, 1e-7, 1e-4)
"""Steps of the central differences; the smallest error counts, because a wrong gradient has an error at every step."""
FLOOR = 1e-4
"""Gradients below this share of the largest gradient are compared as if they had that size, because of rounding."""


@dataclass(frozen=True)
class Trial:
    """A function of tensors, and the gradient of its outputs.

    Attributes:
        outputs: function that computes the outputs, with the same draws at every call.
        tensors: name -> weights or inputs, leaves that require gradients.
        incoming: gradient of the outputs, in the memory layout of the test.
        module: the tested module.
    """

    outputs: Callable[[], Tensor]
    tensors: Mapping[str, Tensor]
    incoming: Tensor
    module: nn.Module


@dataclass(frozen=True)
class Comparison:
    """A directional derivative, computed twice.

    Attributes:
        where: the tensors that are moved.
        numeric: derivative by finite differences.
        analytic: derivative by the gradient.
        error: their difference, relative to the larger one and to the typical value of a random direction.
    """

    where: str
    numeric: float
    analytic: float
    error: float


def comparisons(trial: Trial, *, seed: int, each: bool) -> Iterator[Comparison]:
    """Compare directional derivatives: of all tensors together, of every tensor if `each`, and of single numbers.

    Each tensor moves by the inverse of its gradient's norm, so that all tensors have equal weight in the sum.
    """
    generator = torch.Generator().manual_seed(seed)
    names, leaves = list(trial.tensors), list(trial.tensors.values())
    found = torch.autograd.grad(trial.outputs(), leaves, trial.incoming, allow_unused=True)
    gradients = [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, found, strict=True)]
    norms = [float(gradient.norm()) for gradient in gradients]
    floor = FLOOR * max(norms)
    draws = [torch.randn(leaf.shape, generator=generator, dtype=leaf.dtype) for leaf in leaves]
    for module in trial.module.modules():  # torch computes no gradient for the vector of the padding
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            for leaf, draw in zip(leaves, draws, strict=True):
                if leaf is module.weight:
                    draw[module.padding_idx] = 0
    joint = [draw / max(norm, floor) for draw, norm in zip(draws, norms, strict=True)]
    yield _compared("all", trial, leaves, gradients, joint, max(1.0, math.sqrt(len(leaves))))
    for number, leaf in enumerate(leaves if each else ()):
        yield _compared(names[number], trial, [leaf], [gradients[number]], [joint[number]], 1.0)
    for number in torch.randint(len(leaves), (3,), generator=generator).tolist():
        leaf, norm = leaves[number], max(norms[number], floor)
        places = draws[number].flatten().nonzero()[:, 0]
        place = int(places[torch.randint(len(places), (), generator=generator)])
        direction = torch.zeros(leaf.shape, dtype=leaf.dtype)
        direction.view(-1)[place] = 1 / norm
        usual = 1 / math.sqrt(leaf.numel())
        yield _compared(f"{names[number]}[{place}]", trial, [leaf], [gradients[number]], [direction], usual)


def _compared(
    where: str,
    trial: Trial,
    leaves: Sequence[Tensor],
    gradients: Sequence[Tensor],
    direction: Sequence[Tensor],
    usual: float,
) -> Comparison:
    longest = max(float(d.abs().max()) for d in direction)
    direction, usual = [d / longest for d in direction], usual / longest
    analytic = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
    best = Comparison(where, math.nan, analytic, math.inf)
    for step in STEPS:
        difference = _moved(trial, leaves, direction, step) - _moved(trial, leaves, direction, -step)
        numeric = float((difference * trial.incoming).sum()) / (2 * step)
        error = abs(numeric - analytic) / max(abs(numeric), abs(analytic), usual)
        best = min(best, Comparison(where, numeric, analytic, error), key=lambda one: one.error)
        if best.error < TOLERANCE / 10:
            break
    return best


@contextmanager
def _in_float64(constants: list[Tensor]) -> Iterator[None]:
    """Use float64 where the product requests float32, and the first values of all constants (`detach`).

    Args:
        constants: the constants, in order; filled in the first call.
    """
    detach, to, known, place = Tensor.detach, Tensor.to, bool(constants), iter(tuple(constants))

    def held(tensor: Tensor) -> Tensor:
        if known:
            return next(place).clone()
        constants.append(detach(tensor).clone())
        return detach(tensor)

    def longer(where: Any) -> Any:
        return torch.float64 if where is torch.float32 else where

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "detach", held)
        patch.setattr(Tensor, "float", Tensor.double)
        patch.setattr(Tensor, "to", lambda values, *where, **named: to(values, *map(longer, where), **named))
        patch.setattr(nn.functional, "softmax", lambda values, dim, dtype=None: values.softmax(dim))
        yield


@torch.no_grad()
def _moved(trial: Trial, leaves: Sequence[Tensor], direction: Sequence[Tensor], step: float) -> Tensor:
    before = [leaf.clone() for leaf in leaves]
    try:
        for leaf, along in zip(leaves, direction, strict=True):
            leaf.add_(along, alpha=step)
        with torch.enable_grad():
            outputs = trial.outputs()
        return outputs.detach()
    finally:
        for leaf, value in zip(leaves, before, strict=True):
            leaf.copy_(value)


def largest(trial: Trial, *, seed: int = 0, each: bool = False) -> Comparison:
    """Return the comparison with the largest error; if a joint comparison fails, that of the worst tensor."""
    worst = max(comparisons(trial, seed=seed, each=each), key=lambda one: one.error)
    return worst if each or worst.error < TOLERANCE else largest(trial, seed=seed, each=True)


def in_layout(values: Tensor, layout: str) -> Tensor:
    """Return the same numbers in another layout of memory: "contiguous", "transposed" or "channels-last"."""
    if layout == "channels-last":
        return values.contiguous(memory_format=torch.channels_last)
    return values.contiguous() if layout == "contiguous" else values.mT.contiguous().mT


def of_module(
    module: nn.Module,
    call: Callable[..., Tensor],
    inputs: Mapping[str, Tensor],
    *,
    gradient_layout: str = "contiguous",
    weights_alone: bool = False,
) -> Trial:
    """Return the trial of a module in float64 and training mode, with weights far from their initial values.

    Args:
        module: the tested module.
        call: inputs -> outputs.
        inputs: inputs by the names of the arguments of `call`; floating-point inputs are compared too.
        gradient_layout: memory layout of the incoming gradient.
        weights_alone: whether the gradients of the inputs are omitted.
    """
    module.double().train()
    _disturb(module)
    leaves = {name: values.double().detach() for name, values in inputs.items() if values.is_floating_point()}
    for leaf in leaves.values():
        leaf.requires_grad_(not weights_alone)
    rest = {name: values for name, values in inputs.items() if name not in leaves}
    outputs = _repeatable(module, partial(call, **leaves, **rest))
    like = outputs().detach()
    incoming = torch.randn(like.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    weights = {name: value for name, value in module.named_parameters() if value.requires_grad}
    tensors = weights if weights_alone else weights | leaves
    return Trial(outputs, tensors, in_layout(incoming, gradient_layout), module)


@torch.no_grad()
def _disturb(module: nn.Module) -> None:
    generator = torch.Generator().manual_seed(7)
    for weights in module.parameters():
        weights += 0.1 * torch.randn(weights.shape, generator=generator, dtype=torch.float64).to(weights.dtype)


def _repeatable(module: nn.Module, compute: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Return a function with the same results at every call: with the same buffers, draws and constants."""
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    constants: list[Tensor] = []

    def outputs() -> Tensor:
        module.train()
        with torch.no_grad():
            for name, buffer in module.named_buffers():
                buffer.copy_(buffers[name])
        torch.manual_seed(0)
        np.random.seed(0)  # transformers draws some masks with NumPy
        with _in_float64(constants):
            return compute()

    return outputs


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


# --- the networks ---

FRAMES = {"cnn10": 20, "cnn14": 70, "resnet38": 40, "crnn": 11}
LAYOUTS = ("contiguous", "transposed")


def of_sound(
    name: str, *, padded: bool, layout: str, gradient_layout: str, clips: int = 3, augment: bool = False
) -> Trial:
    """Build the trial of a network of spectrograms (b, t, 64)."""
    torch.manual_seed(0)
    network = Crnn(channels=4, dimension=4) if name == "crnn" else PANNS_NETWORKS[name](width=2, augment=augment)
    frames = FRAMES[name]
    lengths = torch.tensor([frames, frames - 3, frames // 2][:clips]) if padded else None
    values = in_layout(20 * _normal(clips, frames, 64) - 40, layout)
    call = partial(network, lengths=lengths)
    return of_module(network, call, {"log_mel": values}, gradient_layout=gradient_layout)


PADDING = {"unpadded": False, "padded": True}
IMAGES = ("contiguous", "channels-last", "transposed")
_SMALL = ((3, 2, 6, 1), (3, 2, 1, 4), (1, 2, 6, 4))
BLOCKS: dict[str, tuple[Callable[[], nn.Module], Sequence[tuple[int, ...]]]] = {
    "batch norm": (partial(nn.BatchNorm2d, 2), ((3, 2, 6, 4), *_SMALL)),
    "convolutions": (partial(ConvBlock, 2, 3, pool=1), ((3, 2, 6, 4), *_SMALL[:2])),
    "convolutions, pooled": (partial(ConvBlock, 2, 3), ((3, 2, 6, 4),)),
    "residual": (partial(ResidualBlock, 2, 2, halve=False, dropout=0.2), ((3, 2, 6, 4), *_SMALL[:2])),
    "residual, halved": (partial(ResidualBlock, 2, 3, halve=True, dropout=0.2), ((3, 2, 6, 4),)),
}
"""Function that builds a block over (b, 2, t, f), and its tested shapes."""


def of_block(
    build: Callable[[], nn.Module], *, padded: bool, shape: Sequence[int], layout: str, gradient_layout: str
) -> Trial:
    """Build the trial of a block of convolutions, or of batch norm alone."""
    torch.manual_seed(0)
    module, frames = build(), shape[2]
    lengths = torch.tensor([frames, max(1, frames - 2), max(1, frames // 2)])[: shape[0]] if padded else None

    def call(values: Tensor) -> Tensor:
        if isinstance(module, nn.BatchNorm2d):
            return masked_batch_norm(values, module, time_mask(lengths, frames))
        outputs: Tensor = module(values, lengths)[0]
        return outputs

    inputs = {"values": in_layout(_normal(*shape), layout)}
    return of_module(module, call, inputs, gradient_layout=gradient_layout)


def of_pictures() -> Trial:
    """Build the trial of Inception-V3 on pictures in channels-last memory, the layout of its extractor."""
    torch.manual_seed(0)
    network = InceptionV3()
    return of_module(network, network, {"images": in_layout(_normal(3, 3, 107, 107), "channels-last")})


def of_patches() -> Trial:
    """Build the trial of VGGish."""
    torch.manual_seed(0)
    network = VGGish()
    return of_module(network, network, {"patches": _normal(2, 96, 64)}, gradient_layout="transposed")


def of_words() -> Trial:
    """Build the trial of BERT on captions of unequal length."""
    torch.manual_seed(0)
    network = small_bert(30, layers=2, dimension=16)
    inputs = {"ids": torch.arange(12).view(3, 4), "mask": torch.tensor([4, 2, 1])[:, None] > torch.arange(4)}
    return of_module(network, network, inputs, gradient_layout="transposed")


def of_layers(activation: str, *, reduced: bool) -> Trial:
    """Build the trial of linear layers; `reduced` uses the layers with their own products and tangents, in float64."""
    torch.manual_seed(0)
    network = layers((5, 7, 3), activation=activation, dropout=0.3)
    for module in network.modules():
        if isinstance(module, Linear | Tanh) and reduced:
            module.reduced = torch.float64
    return of_module(network, network, {"input": in_layout(_normal(8, 5), "transposed")}, gradient_layout="transposed")


EXTRACTOR_NETWORKS: dict[str, Callable[[], Trial]] = {"vggish": of_patches, "inception-v3": of_pictures}
"""Networks of extractors that are not towers."""


@cache
def _networks_folder() -> Path:
    folder = tempfile.TemporaryDirectory()
    _FOLDERS.append(folder)
    return Path(folder.name)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def of_pretrained(name: str, modality: Any) -> Trial:
    """Build the trial of a tower with a tiny random network of `transformers`, which is trained completely."""
    torch.manual_seed(0)
    tower: Any = HubInput(f"hf:{written(name, _networks_folder())}", modality, FineTuning(), None)
    tower.train_blocks(frozen=False)
    preparation = tower.preparation
    stacked = tower._stacked(2 * preparation.items(preparation.trial))  # noise makes the two clips differ
    for number, values in enumerate(stacked.values()):
        if values.is_floating_point():
            values += 0.3 * torch.randn(values.shape, generator=torch.Generator().manual_seed(number))
    tower.double()

    def call(**inputs: Tensor) -> Tensor:
        return tower._pool(tower.network, inputs)

    weights_alone = name in WITHOUT_INPUTS
    trial = of_module(tower, call, stacked, gradient_layout="transposed", weights_alone=weights_alone)
    frozen = FROZEN.get(name, ())
    tensors = {key: value for key, value in trial.tensors.items() if not any(part in key for part in frozen)}
    return replace(trial, tensors=tensors)


FROZEN = dict.fromkeys(("pe_audio", "pe_audio_video"), ("embedder.dac_encoder", "embedder.bottleneck"))
"""Parts of pretrained networks that transformers runs without gradients; the inputs pass through them."""
WITHOUT_INPUTS = {
    **dict.fromkeys(
        ("wav2vec2", "hubert", "wavlm", "data2vec-audio"), "transformers makes the sound a leaf of its own"
    ),
    **dict.fromkeys(FROZEN, "see FROZEN"),
}
"""Pretrained networks whose inputs have no gradient."""


@cache
def _splits() -> Any:
    return to_splits(synthetic(classes=3, train=24, valid=6, test=6, dimensions=(8, 10), difficulty=0.2))


def of_learner(method: str, *settings: str, **choices: Any) -> dict[str, Trial]:
    """Build the trials of a learner of vectors: the objective of each of its players on a batch."""
    config = assemble(method=method, settings=[*SETTINGS.get(method, ()), *settings], **choices)
    model: Any = untrained_model(config, _splits(), torch.device("cpu"))
    learner: Learner = model.method.learner
    train = model.scaling.clips(_splits().train)
    train = replace(train, features={m: train.matrix(m).double() for m in train.modalities})
    _disturb(learner.double().eval())
    torch.manual_seed(0)
    with _in_float64([]):
        learner.before_epoch(train, Epoch(learner.stages(10)[-1].name, 0, 1))
    return _of_players(learner, lambda moved: moved, train.features, train.labels)


def _of_players(
    learner: Learner, laid: Callable[[Mapping[str, Tensor]], Mapping[str, Any]], features: Mapping[str, Tensor],
    labels: Tensor,
) -> dict[str, Trial]:  # fmt: skip
    learner.double().train()
    leaves = {m: values.detach().double().clone().requires_grad_() for m, values in features.items()}
    stage, rows = learner.stages(10)[-1].name, torch.arange(len(labels))
    found = {}
    for name, player in learner.players().items():

        def loss(name: str = name) -> Tensor:
            batch = Batch(laid(leaves), labels, rows, torch.Generator().manual_seed(1), Epoch(stage, 0, 1))
            return learner.players()[name].loss(batch)["loss"]

        moved = {id(parameter) for parameter in player.parameters}
        weights = {key: value for key, value in learner.named_parameters() if id(value) in moved}
        weights |= {} if name in OF_FIXED_EMBEDDINGS else leaves
        found[name] = Trial(_repeatable(learner, loss), weights, torch.ones((), dtype=torch.float64), learner)
    return found


OF_FIXED_EMBEDDINGS = {"modality_classifier": "acmr embeds without gradients where the classifier is trained"}
"""Players whose loss uses `no_grad` for the embeddings, so that inputs have no gradient."""


CAPTIONS = Captions(("a dog barks", "rain", "someone is clapping loudly", "a dog", "loud rain falls"))


def of_towers(method: str, audio: str, *, padded: bool) -> dict[str, Trial]:
    """Build the trials of a method of sound and captions: the objective of each of its players on a batch."""
    network = () if method == "xie" else (f"method.audio={audio}",)
    config = assemble(method=method, settings=[*SETTINGS[method], *network])
    context = Context({"audio": 0, "text": 0}, 0, seed=3)
    learner: Any = build_method(method, config.arguments(), config.training, context).learner  # type: ignore[attr-defined]
    _disturb(learner)
    learner.learn_words(CAPTIONS)
    text = learner.text if method == "xie" else learner.tower("text").network
    rows = torch.arange(len(CAPTIONS))
    words, frames = text.tokens(CAPTIONS).batch(rows), FRAMES["crnn" if method == "xie" else audio]
    lengths = torch.tensor([frames, frames - 2, frames - 5, frames - 1, frames]) if padded else rows * 0 + frames

    def laid(moved: Mapping[str, Tensor]) -> dict[str, Padded]:
        return {"audio": Padded(moved["audio"], lengths, rows >= 0), "text": words}

    return _of_players(learner, laid, {"audio": 20 * _normal(5, frames, 64) - 40}, rows)


# --- all of them ---

WITHOUT_NETWORK = {
    "cca": "solved, not trained by gradients",
    "kcca": "solved, not trained by gradients",
    "c-cca": "solved, not trained by gradients",
    "random": "draws its vectors",
    "zero-shot": "trains nothing",
}
"""Methods without a network."""


Build = Callable[[], Trial | dict[str, Trial]]


def trials() -> dict[str, dict[str, Build]]:
    """Return the builders of all trials: network -> case -> builder. The registries determine the networks."""
    found: dict[str, dict[str, Build]] = defaultdict(dict)
    for name in [*PANNS_NETWORKS, "crnn"]:
        sound = partial(of_sound, name)
        for kind, layout, gradient in product(PADDING, LAYOUTS, LAYOUTS):
            found[name][f"{kind}, {layout} inputs, {gradient} gradients"] = partial(
                sound, padded=PADDING[kind], layout=layout, gradient_layout=gradient
            )
        if name != "crnn":
            found[name]["unpadded, SpecAugment"] = partial(
                sound, padded=False, layout=LAYOUTS[0], gradient_layout=LAYOUTS[0], augment=True
            )
        found[name]["one clip"] = partial(sound, padded=False, layout=LAYOUTS[0], gradient_layout=LAYOUTS[0], clips=1)
    for block, (build, shapes) in BLOCKS.items():
        for shape, kind, layout, gradient in product(shapes, PADDING, IMAGES, IMAGES):
            found[block][f"{shape}, {kind}, {layout} inputs, {gradient} gradients"] = partial(
                of_block, build, padded=PADDING[kind], shape=shape, layout=layout, gradient_layout=gradient
            )
    for name, pretrained in EXTRACTOR_NETWORKS.items():
        found[name]["channels-last inputs"] = pretrained
    found["bert"]["padded"] = of_words
    for name, reduced in product(ACTIVATIONS, (False, True)):
        found[f"layers, {name}"]["own products" if reduced else "of torch"] = partial(of_layers, name, reduced=reduced)
    for name, (_, modalities) in NETWORKS.items():
        for modality in modalities:
            found[f"hf {name} {modality}"]["transposed gradients"] = partial(of_pretrained, name, modality)
    for method in sorted(set(METHODS) - WITHOUT_NETWORK.keys() - set(OF_SOUND)):
        found[method]["a batch"] = partial(of_learner, method)
    for loss in sorted({*LOSSES, *RECIPES, "aa-triplet"}):
        found[f"aadml, loss {loss}"]["a batch"] = partial(of_learner, "aadml", loss=loss)
    for proxy in PROXIES:
        found[f"aadml, proxy {proxy}"]["a batch"] = partial(of_learner, "aadml", f"proxy.name={proxy}", loss="triplet")
    for method, kind in product(OF_SOUND, PADDING):
        for network in ("crnn",) if method == "xie" else PANNS_NETWORKS:
            found[method][f"{network}, {kind}"] = partial(of_towers, method, network, padded=PADDING[kind])
    return dict(found)


def built(build: Build) -> dict[str, Trial]:
    """Build the trials of a case: player -> trial, or one trial without a name."""
    made = build()
    return {"": made} if isinstance(made, Trial) else made


ABOUT = """Every network is tried in float64 and training mode, with seeded draws. A comparison is a directional
derivative: along a random direction of one tensor of weights or inputs (of networks up to a million weights), of all
tensors together, or along a single number. The numeric one is the best of central differences with steps of 1e-7 to
1e-4. The tensors are those of the case that has most.

| network | cases | tensors | comparisons | largest relative error | where |
| --- | --: | --: | --: | --: | --- |"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of the names of networks; all where there are none")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    described = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(described, capture_output=True, text=True, check=True).stdout.strip()
    print("# Gradients against finite differences\n")
    print(f"`scripts/soak/gradients.py --seed {options.seed}` at commit {commit}, torch {torch.__version__}.")
    print(ABOUT, flush=True)
    failed = [
        name
        for name, cases in trials().items()
        if name.startswith(tuple(options.names or ("",))) and _row(name, cases, options.seed) > TOLERANCE
    ]
    print(f"\nAbove {TOLERANCE:.0e}: {', '.join(failed) or 'none'}.")
    sys.exit(bool(failed))


def _row(name: str, cases: Mapping[str, Build], seed: int) -> float:
    """Print the row of a network; return its largest error."""
    count, tensors, worst = 0, 0, ("", Comparison("", 0, 0, -1))
    for case, build in cases.items():
        for player, trial in built(build).items():
            each = sum(tensor.numel() for tensor in trial.tensors.values()) <= 1_000_000
            every = list(comparisons(trial, seed=seed, each=each))
            count, tensors = count + len(every), max(tensors, len(trial.tensors))
            where = ", ".join(filter(None, (case, player)))
            worst = max(worst, *((where, one) for one in every), key=lambda pair: pair[1].error)
    where, largest_one = worst
    error = largest_one.error
    print(
        f"| {name} | {len(cases)} | {tensors} | {count:,} | {error:.0e} | {where}: `{largest_one.where}` |", flush=True
    )
    return error


if __name__ == "__main__":
    main()
