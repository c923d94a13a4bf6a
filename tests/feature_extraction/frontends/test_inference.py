"""Devices, precision and seeded weights of networks that extract features."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from aadml.feature_extraction.frontends import inference
from aadml.feature_extraction.frontends.inference import Runner, bfloat16_units, chosen_device, seeded, uses_bfloat16
from aadml.feature_extraction.ground.errors import InputError


@pytest.mark.parametrize(
    ("device", "count", "chosen"),
    [
        ("auto", 0, "cpu"), ("auto", 2, "cuda"), ("cpu", 2, "cpu"), ("cuda", 1, "cuda"), ("cuda:0", 1, "cuda:0"),
        ("cuda:1", 2, "cuda:1"), ("cuda:2", 2, None), ("cuda:1", 1, None),
        ("cuda:x", 2, None), ("cuda", 0, None), ("tpu", 2, None),
    ],
)  # fmt: skip
def test_a_device_is_chosen_among_those_of_the_machine(monkeypatch, device, count, chosen):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    if chosen is not None:
        assert chosen_device(device, "config") == torch.device(chosen)
        return
    known = {
        0: r"auto, cpu \(this machine has no CUDA device\)", 1: "auto, cpu, cuda, cuda:0",
        2: "auto, cpu, cuda, cuda:0 to cuda:1",
    }[count]  # fmt: skip
    with pytest.raises(InputError, match=rf"config.device is {device}; choose from {known}$"):
        chosen_device(device, "config")


def test_bfloat16_is_used_if_set_or_if_the_device_has_units(monkeypatch):
    used = {}
    for precision, units in itertools.product(("float32", "bfloat16", "auto"), (False, True)):
        monkeypatch.setattr(inference, "bfloat16_units", lambda _, units=units: units)
        used[precision, units] = uses_bfloat16(precision, torch.device("cpu"))
    assert used == {(p, units): p == "bfloat16" or (p == "auto" and units) for p, units in used}


@pytest.mark.parametrize(("kind", "has"), [("cpu", True), ("cpu", False), ("cuda", True), ("cuda", False)])
def test_the_units_are_those_of_the_device(monkeypatch, kind, has):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has == (kind == "cpu"), raising=False)
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda *, including_emulation: including_emulation or has == (kind == "cuda")
    )
    assert bfloat16_units(torch.device(kind)) is has


class _Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.ModuleDict({"conv": nn.Conv1d(200, 50, 2), "bn": nn.BatchNorm1d(3)})


def test_seeded_weights_have_the_spread_of_their_inputs_and_the_identity_as_normalization():
    states = [seeded(_Network, seed).state_dict() for seed in (0, 0, 1)]
    weights = [state.pop("part.conv.weight") for state in states]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert float(weights[0].std()) == pytest.approx((2 / 400) ** 0.5, rel=0.03)
    assert {name.removeprefix("part."): values.unique().tolist() for name, values in states[0].items()} == {
        "conv.bias": [0], "bn.weight": [1], "bn.bias": [0], "bn.running_mean": [0], "bn.running_var": [1],
        "bn.num_batches_tracked": [0],
    }  # fmt: skip


def test_copies_of_an_item_fill_the_last_batch_and_rows_are_float32():
    seen = []
    clips = [np.full((count, 2), number) for number, count in enumerate((3, 1, 3), start=1)]

    def pool(_, items):
        seen.append(items["x"][:, 0].tolist())
        return 2 * items["x"][:, :1].double()

    found = Runner(None, pool, torch.device("cpu"), False, 4)([{"x": row} for row in clip] for clip in clips)
    assert seen == [[1, 1, 1, 2], [3, 3, 3, 3]]
    assert [rows.ravel().tolist() for rows in found] == [[2, 2, 2], [4], [6, 6, 6]]
    assert {rows.dtype.name for rows in found} == {"float32"}
