"""Gradients of a batch in parts: those of the whole batch, with dropout."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.data.sources.loading import Loading
from aadml.data.sources.network_items import ItemBatch
from aadml.data.sources.texts import Captions
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import FineTuning
from tests.feature_extraction.hub import tiny

CAPTIONS = ("rain", "a dog", "a cat", "a dog barks at the rain", "wind", "old tin roof", "a loud dog", "near by")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Networks that drop units, layers and whole paths."""
    folder = tmp_path_factory.mktemp("dropping")
    for name in ("clap", "wav2vec2", "clip"):
        place = tiny.written(name, folder)
        config = (place / "config.json").read_text()
        for key, rate in (("attention_dropout", 0.2), ("drop_path_rate", 0.3), ("layerdrop", 0.4),
                          ("attention_probs_dropout_prob", 0.2), ("hidden_dropout_prob", 0.2)):  # fmt: skip
            config = config.replace(f'"{key}": 0.0', f'"{key}": {rate}').replace(f'"{key}": 0.1', f'"{key}": {rate}')
        (place / "config.json").write_text(config)
    return folder


def network(folder, name, modality, **options):
    found = HubInput(f"hf:{folder / name}", modality, FineTuning(**options), None)
    found.train_blocks(frozen=False)
    return found.train()


def batch_of(found, modality):
    if modality == "text":
        batch = found.prepared(Captions(CAPTIONS), Loading(memory=1 << 20)).batch(torch.arange(len(CAPTIONS)))
    else:
        draw, preparation = np.random.default_rng(0), found.preparation
        clips = [draw.permuted(preparation.trial, axis=0) for _ in range(6)]
        batch = ItemBatch(tuple(tuple(preparation.items(clip)) for clip in clips), torch.ones(6, dtype=torch.bool))
    lost = replace(batch, clips=(*batch.clips, (), batch.clips[0] + batch.clips[3]))
    return replace(lost, present=torch.tensor([*batch.present.tolist(), False, True]))


def gradients(found, batch, steps=1):
    """Gradients of a loss that compares all clips of the batch, after some steps without update."""
    torch.manual_seed(7)
    for _ in range(steps):
        found.zero_grad()
        vectors = torch.nn.functional.normalize(found(batch), dim=1)
        loss = (vectors @ vectors.T).logsumexp(1).mean()
        loss.backward()
    return float(loss.detach()), {name: p.grad for name, p in found.network.named_parameters() if p.grad is not None}


def equal(found, expected):
    assert found[0] == pytest.approx(expected[0], abs=1e-6)
    assert found[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=0, atol=1e-6)


CASES = [("clap", "text"), ("clap", "audio"), ("wav2vec2", "audio"), ("clip", "visual")]


@pytest.mark.parametrize(("name", "modality"), CASES)
@pytest.mark.parametrize("micro_batch", [1, 3, 0])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_with_less_memory_are_those_of_the_whole_batch(folder, name, modality, micro_batch, checkpointing):
    whole = network(folder, name, modality)
    parts = network(folder, name, modality, micro_batch=micro_batch, checkpointing=checkpointing)
    batch = batch_of(whole, modality)
    equal(gradients(parts, batch), gradients(whole, batch))


def stored(found, batch):
    """Bytes of the activations that a loss keeps for its gradient."""
    sizes = {}
    with torch.autograd.graph.saved_tensors_hooks(
        lambda value: sizes.update({value.untyped_storage().data_ptr(): value.untyped_storage().nbytes()}) or value,
        lambda value: value,
    ):
        torch.manual_seed(7)
        vectors = found(batch)
    assert vectors.requires_grad
    return sum(sizes.values())


@pytest.mark.parametrize(("name", "modality"), CASES)
def test_less_is_stored(folder, name, modality):
    whole, again = (network(folder, name, modality, checkpointing=on) for on in (False, True))
    batch = batch_of(whole, modality)
    assert stored(again, batch) < 0.9 * stored(whole, batch)


def test_steps_draw_anew_and_the_seed_decides(folder):
    first, again, second = (network(folder, "clap", "text") for _ in range(3))
    batch = batch_of(first, "text")
    loss = gradients(first, batch)[0]
    assert gradients(again, batch)[0] == loss
    assert gradients(second, batch, steps=2)[0] != loss


def test_a_network_leaves_the_draws_of_other_layers_as_they_are(folder):
    found = network(folder, "clap", "text")
    batch = batch_of(found, "text")
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    found(batch)
    assert torch.equal(torch.rand(4), expected)


@pytest.mark.parametrize(("name", "modality"), CASES)
def test_workers_compute_their_rows_of_the_whole_batch(folder, name, modality):
    whole, first, second = (network(folder, name, modality) for _ in range(3))
    batch = batch_of(whole, modality)
    torch.manual_seed(7)
    rows = torch.arange(len(batch)).split(len(batch) // 2)
    parts = [first(batch.select(rows[0])), second(batch.select(torch.cat(rows[1:])), torch.cat(rows[1:]))]
    torch.testing.assert_close(torch.cat(parts), whole(batch), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "loss"),
    [("aadml", "aa-triplet"), *(pytest.param(m, None, marks=pytest.mark.slow) for m in ("pairs", "clip", "dscmr"))],
)
def test_methods_train_the_same_networks_with_less_memory(videos, settings, method, loss):
    usual = {key: value for key, value in settings.items() if method in ("aadml", "pairs") or "network" not in key}
    options = usual | {"training.optimizer": "sgd", "training.learning_rate": 0.01}
    less = {"towers.micro_batch": 2, "towers.checkpointing": True}
    whole, parts = (
        aadml.fit(videos, method=method, loss=loss, epochs=1, settings=options | more, device="cpu").tensors()
        for more in ({}, less)
    )
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-4, atol=1e-5)
