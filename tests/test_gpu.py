"""A GPU computes the values of a CPU, and the host seldom waits for it."""

import copy
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.comparison.processes import group
from aadml.feature_extraction.backbones import extractor, options_of
from aadml.losses import LOSSES
from aadml.methods.training import loop
from aadml.methods.training.learner import Epoch, batch_of
from aadml.methods.training.optimization import Optimization
from aadml.methods.training.precision import computed_in
from aadml.proxies.exact_search import nearest
from aadml.retrieval.evaluation import evaluate
from aadml.runs.prepare import untrained_model
from aadml.selections import SELECTIONS
from tests.comparison.processes import steps
from tests.feature_extraction.backbones import test_laws as of_extractors
from tests.losses.test_host_reads import comparison
from tests.methods import test_laws as laws

pytestmark = pytest.mark.gpu

CPU, GPU = torch.device("cpu"), torch.device("cuda")
TRAINED = sorted(set(laws.NAMES) - {"random", "cca", "c-cca", "kcca"})
EXTRACTORS = [name for name in of_extractors.HERE if "device" in options_of(name, of_extractors.MODALITY[name])]
WAITS = {
    "dcca": (4, "the host checks two Cholesky factors and the eigenvalues of a batch, and whether its loss is finite"),
    "c-dcca": (5, "as for dcca; and the number of classes of a batch is read"),
}
"""Methods with more than one wait per step."""


def on(device, name):
    """Return the figures and gradients of a step of a case, in float64, without dropout and noise."""
    torch.manual_seed(0)
    learner = steps.LEARNERS[name]().double()
    for module in learner.modules():
        for draws in {"share", "input_noise"} & vars(module).keys():
            setattr(module, draws, 0.0)
    learner, train = copy.deepcopy(learner).to(device), steps.clips()
    double = {m: train.matrix(m).double() for m in train.modalities}
    train = loop._to_device(Clips(double, train.labels, train.ids, train.class_names), device)
    epoch = Epoch("joint", 0, 1)
    learner.eval().before_epoch(train, epoch)
    learner.train()
    rows = torch.randperm(len(train), generator=torch.Generator().manual_seed(1))[: steps.BATCH]
    found = {}
    for key, player in learner.players().items():
        learner.zero_grad()
        parts = player.loss(batch_of(train, rows, device, torch.Generator().manual_seed(2), epoch))
        parts["loss"].backward()
        found |= {f"{key}: {name}": value.detach().cpu() for name, value in parts.items()}
        found |= {
            f"{key}: gradient {number}": parameter.grad.cpu()
            for number, parameter in enumerate(player.parameters)
            if parameter.grad is not None
        }
    return found


@pytest.mark.parametrize("name", sorted(steps.LEARNERS))
def test_a_step_computes_what_it_computes_on_a_cpu(name):
    with group.divided():
        here, there = on(CPU, name), on(GPU, name)
    assert here.keys() == there.keys()
    for key, value in here.items():
        assert torch.allclose(there[key].double(), value.double(), rtol=1e-8, atol=1e-9), key


@pytest.mark.parametrize("kind", ["codes", "masks"])
@pytest.mark.parametrize("name", sorted(SELECTIONS))
def test_a_selection_selects_what_it_selects_on_a_cpu(name, kind):
    chosen = []
    for device in (CPU, GPU):
        torch.manual_seed(0)
        pairs = SELECTIONS[name](comparison(kind, device), torch.Generator().manual_seed(0))
        chosen.append([pairs.positives.cpu(), pairs.negatives.cpu(), pairs.own.cpu()])
    for here, there in zip(*chosen, strict=True):
        assert torch.equal(here, there)


@pytest.mark.parametrize("precision", ["highest", "high"])
@pytest.mark.parametrize("dimension", [3, 10, 128])
def test_neighbors_are_those_of_a_cpu_also_under_tf32(dimension, precision):
    generator = torch.Generator().manual_seed(dimension)
    bank = torch.randn(6000, dimension, generator=generator)
    bank[1::3] = bank[::3]  # ties
    codes = torch.arange(len(bank)) % 40
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        here, there = (
            nearest(
                [bank.to(device)], [bank.to(device)], k=7, query_codes=codes.to(device), bank_codes=codes.to(device),
                excluded=150,
            )
            for device in (CPU, GPU)
        )  # fmt: skip
    finally:
        torch.set_float32_matmul_precision(before)
    assert torch.equal(there[0].cpu(), here[0])
    torch.testing.assert_close(there[1].cpu(), here[1], rtol=0, atol=1e-12)


def described_on(device, name):
    """Return the vectors of two clips of an untrained extractor."""
    options = {"weights": "untrained", "device": device}
    made = extractor(name, of_extractors.MODALITY[name], options)
    return made.describe([made.prepare(of_extractors.clip(name, seed)) for seed in (0, 1)])


@contextmanager
def waits():
    """Yield a list that receives the places, `file:line`, at which the host waited for the GPU."""
    places = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield places
        finally:
            torch.cuda.set_sync_debug_mode("default")
            places += [f"{w.filename}:{w.lineno}" for w in seen if "synchronizing CUDA operation" in str(w.message)]


def waits_of_steps(monkeypatch, name, *settings):
    """Return the places of all waits of an epoch after its first step, with batches, and the number of these steps."""
    complete = laws.config(name, *laws.QUICK, *laws.SMALL.get(name, ()), "training.epochs=2", *settings)
    model = untrained_model(complete, laws.splits(), GPU)
    places, count, step, batch = [], [0], Optimization.step, loop.batch_of

    def counted(call, *arguments, **options):
        with waits() as here:
            result = call(*arguments, **options)
        places.extend(here)
        return result

    def stepped(*arguments, first=False, probed=False):
        if first:
            return step(*arguments, first=first, probed=probed)
        count[0] += 1
        return counted(step, *arguments)

    monkeypatch.setattr(Optimization, "step", stepped)
    monkeypatch.setattr(loop, "batch_of", lambda *arguments: counted(batch, *arguments))
    laws.fit(model)
    return places, count[0]


@pytest.mark.parametrize("name", TRAINED)
def test_a_step_of_a_method_waits_at_most_once(monkeypatch, name):
    places, count = waits_of_steps(monkeypatch, name)
    assert count
    assert len(places) <= WAITS.get(name, (1,))[0] * count, sorted(set(places))


@pytest.mark.parametrize("proxy", ["", "aa-"])
@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_step_with_a_loss_waits_at_most_once(monkeypatch, name, proxy):
    places, count = waits_of_steps(monkeypatch, "aadml", f"loss={proxy}{name}")
    assert count
    assert len(places) <= count, sorted(set(places))


@pytest.mark.parametrize("name", TRAINED)
def test_a_method_learns(name):
    complete = laws.config(name, *laws.QUICK, *laws.SMALL.get(name, ()))
    model = laws.fit(untrained_model(complete, laws.splits(), GPU))
    result = evaluate(model.embed_clips(laws.splits().test)).to_json()
    assert result["map_mean"] > result["chance"] + 0.15


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_a_step_whose_loss_is_infinite_changes_no_weight(precision):
    model = untrained_model(laws.config("aadml", *laws.QUICK, *laws.SMALL["aadml"]), laws.splits(), GPU)
    learner, train = model.method.learner, loop._to_device(model.scaling.clips(laws.splits().train), GPU)
    player, optimization = learner.players()["encoders"], Optimization(learner.players(), model.method.settings)
    learner.eval().before_epoch(train, Epoch("joint", 0, 1))
    learner.train()
    changed = []
    for scale in (1.0, torch.inf, 1.0):
        batch = batch_of(train, torch.arange(40), GPU, torch.Generator(), Epoch("joint", 0, 1))
        before = [p.detach().clone() for p in player.parameters]
        scaled = copy.copy(player)
        object.__setattr__(scaled, "loss", lambda b, s=scale: {"loss": s * player.loss(b)["loss"]})
        with computed_in(precision, learner):
            optimization.step("encoders", scaled, batch)
        changed.append(any(not torch.equal(p, old) for p, old in zip(player.parameters, before, strict=True)))
        assert all(bool(torch.isfinite(p).all()) for p in player.parameters)
    assert changed == [True, False, True]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of torch, while it traces
@pytest.mark.parametrize("loss", ["aa-triplet", "supcon", "aa-contrastive", "multi-similarity", "proxy-anchor"])
def test_a_training_with_compiled_losses_learns(loss):
    small = ["network.hidden=[32]", f"loss={loss}", "training.compile=true"]
    model = laws.fit(untrained_model(laws.config("aadml", *laws.QUICK, *small), laws.splits(), GPU))
    result = evaluate(model.embed_clips(laws.splits().test)).to_json()
    assert result["map_mean"] > result["chance"] + 0.15


@pytest.mark.parametrize("name", EXTRACTORS)
def test_an_extractor_describes_as_on_a_cpu(name):
    vectors = [described_on(device, name) for device in ("cpu", "cuda")]
    for here, there in zip(*vectors, strict=True):
        scale = np.abs(here).max()
        np.testing.assert_allclose(there, here, rtol=1e-3, atol=2e-3 * scale)
