"""A loss, a selection or a proxy reads at most one value on the host per step, as each such read stops a GPU."""

import inspect
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from aadml.comparison import Comparison, host_reads
from aadml.comparison.masks import stored
from aadml.losses import LOSSES
from aadml.losses.kernels import violations
from aadml.proxies import PROXIES
from aadml.proxies.contract import TrainingSet
from aadml.selections import SELECTIONS

SIZE, DIMENSION, FEATURES, CLASSES = 60, 4, 5, 5
LABELS = torch.arange(SIZE) % CLASSES
READING = {"_local_scalar_dense", "nonzero", "_unique2", "unique_dim", "masked_select", "equal", "bincount"}
MORE = {
    "daml": (3, "the number of the draw is stored in the model, and players draw apart"),
    "hdml": (4, "the number of the draw is stored in the model, and players draw apart"),
}


class HostReads(TorchDispatchMode):
    """Names of the operators that read values on the host."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.names = []
        plain = torch.Tensor.tolist
        monkeypatch.setattr(torch.Tensor, "tolist", lambda tensor: self.note("tolist") or plain(tensor))

    def note(self, name):
        self.names.append(name)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.__name__.partition(".")[0]
        places = args[1] if name.startswith("index") and isinstance(args[1], list | tuple) else ()
        if name in READING or any(place is not None and place.dtype == torch.bool for place in places):
            self.note(name)
        if function.namespace != "aadml":
            return function(*args, **(kwargs or {}))
        with self:
            return violations._counts(*args)


@pytest.fixture
def reads(monkeypatch):
    monkeypatch.setattr(host_reads, "UNKEPT", ())  # as on a GPU
    return HostReads(monkeypatch)


def comparison(kind, device="cpu"):
    x, r = (torch.randn(SIZE, DIMENSION).to(device).requires_grad_() for _ in range(2))
    labels = LABELS.to(device)
    pairs = Comparison.of_labels(x, r, labels, labels)
    if kind == "masks":
        pairs = pairs.narrow(pairs.positives, pairs.negatives)
    return replace(
        pairs,
        positives=stored(pairs, "positives"),
        negatives=stored(pairs, "negatives"),
        within=torch.arange(SIZE, device=device) % 2 == 0,
        guides={name: torch.randn(SIZE, SIZE).to(device) for name in ("text", "audio")},
        anchor_features=torch.randn(SIZE, FEATURES).to(device),
        candidate_features=torch.randn(SIZE, FEATURES).to(device),
        candidate_head=nn.Linear(FEATURES, DIMENSION).to(device),
    )


@pytest.mark.parametrize("kind", ["codes", "masks"])
@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_step_of_a_loss_reads_at_most_one_value(reads, name, kind):
    pairs, loss = comparison(kind), LOSSES[name]
    if inspect.isclass(loss):
        context = {"dimension": DIMENSION, "classes": CLASSES, "features": FEATURES, "hidden": 8}
        loss = loss(**{key: value for key, value in context.items() if key in inspect.signature(loss).parameters})
    with reads:
        terms = loss(pairs)
        total = terms.total.sum() / terms.active.sum().clamp_min(1)
        (total if terms.penalty is None else total + terms.penalty).backward()
    assert len(reads.names) <= MORE.get(name, (1,))[0], reads.names


@pytest.mark.parametrize("name", ["nt-xent", "supcon", "cross-clr", "dsl", "posterior-nca"])
def test_a_learned_temperature_is_not_read(reads, name):
    pairs, learned = comparison("codes"), torch.tensor(0.1, requires_grad=True)
    counts = []
    for temperature in (0.1, learned):
        with reads:
            LOSSES[name](pairs, temperature=temperature).total.sum().backward()
        counts.append(len(reads.names))
        reads.names.clear()
    assert counts[1] <= counts[0]


@pytest.mark.parametrize("name", sorted(SELECTIONS))
def test_a_selection_reads_at_most_one_value(reads, name):
    pairs = comparison("codes")
    with reads:
        SELECTIONS[name](pairs, torch.Generator())
    assert len(reads.names) <= 1, reads.names


@pytest.mark.parametrize("name", sorted(PROXIES))
def test_a_step_of_a_proxy_reads_at_most_one_value(reads, name):
    bank = {modality: torch.randn(SIZE, DIMENSION) for modality in ("audio", "visual")}
    proxy, rows = PROXIES[name](DIMENSION, tuple(bank)), torch.arange(20)
    proxy.refresh(TrainingSet(bank, LABELS, bank, torch.Generator()))
    reads.names.clear()  # a graph is built once per epoch
    batch = {modality: values[rows].requires_grad_() for modality, values in bank.items()}
    with reads:
        sum(values.sum() for values in proxy(batch, rows).values()).backward()
    assert len(reads.names) <= 1, reads.names


def test_a_read_is_counted(reads):
    values = torch.arange(3.0)
    with reads:
        assert (float(values[0]), values.tolist()) == (0, [0, 1, 2])
        assert len(values[values > 0]) == len((values > 0).nonzero()) == 2
    assert reads.names == ["_local_scalar_dense", "tolist", "index", "nonzero"]
