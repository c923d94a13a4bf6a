"""Controls of reading R5, against their definitions as loops."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.configuration.files import ConfigFile, open_config
from aadml.proxies.contract import TrainingSet
from aadml.proxies.mixture import MixtureOptions
from aadml.studies.grid import Overrides
from scripts.experiments.anchor_aware.contenders import NARROW
from scripts.experiments.anchor_aware.experiment import DataSet, Experiment
from scripts.experiments.anchor_aware.fold import HERE
from scripts.experiments.anchor_aware.ledger import Ledger, Row
from scripts.experiments.anchor_aware.r5 import NO_PROXY, PLANNED, PLUG_INS, R5, STAGE
from scripts.experiments.anchor_aware.r5_answer import EQUAL, Against, answer, differences, r5_section, states
from scripts.experiments.anchor_aware.r5_pilot import Observed
from scripts.experiments.anchor_aware.r5_proxies import Noise, NoKeys, OtherClasses, OwnClass, Shrinkage, ShuffledValues
from scripts.experiments.anchor_aware.stages import runs_of

BASE = Overrides(NARROW).within(ConfigFile({**open_config("aadml").values, "data": "x.h5"})).values
SET = DataSet(BASE, 7, 304)
BATCH, WIDTH, CLASSES = 9, 10, 3
INDEX = torch.arange(0, 2 * BATCH, 2)
LABELS = torch.arange(2 * BATCH) // 2 % CLASSES


def started(kind):
    """Return a proxy of a kind, after its refresh, with the embeddings of a batch."""
    torch.manual_seed(1)
    proxy = kind(WIDTH, ("audio", "visual"), mixture=MixtureOptions(residual="convex"), reading="R5")
    bank = {m: torch.rand(2 * BATCH, WIDTH, dtype=torch.float64) for m in ("audio", "visual")}
    proxy.double().refresh(TrainingSet(bank, LABELS))
    return proxy, {m: x[INDEX] + 0.1 for m, x in bank.items()}


@torch.no_grad()
def by_loops(proxy, vectors, modality, weights_of):
    """Compute R5's proxies head by head, key by key, anchor by anchor; `weights_of` maps (i, logits) to weights."""
    attention, heads = proxy.attentions[modality], proxy.attentions[modality].heads
    lists = proxy.graph.lists(INDEX, vectors)[modality]
    x, size = vectors[modality], WIDTH // heads
    found = []
    for i in range(BATCH):
        calls = []
        for j in range(lists.index.shape[1]):
            keys = proxy.graph.bank[modality][lists.index[:, j]]
            parts = []
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                query, key = attention.query(x[i])[part], attention.key(keys)[:, part]
                logits = [float(query @ key[n]) / math.sqrt(size) for n in range(BATCH)]
                weights = weights_of(i, logits)
                parts.append(sum(weights[n] * attention.value(x[n])[part] for n in range(BATCH)))
            calls.append(attention.output(torch.cat(parts)))
        found.append((x[i] + sum(calls) / len(calls)) / 2)
    return torch.stack(found)


def softmax_over(logits, allowed):
    total = sum(math.exp(one) for n, one in enumerate(logits) if allowed(n))
    return [math.exp(one) / total if allowed(n) else 0.0 for n, one in enumerate(logits)]


def same(i, n):
    return bool(LABELS[INDEX[i]] == LABELS[INDEX[n]])


WEIGHTS = {
    OwnClass: lambda i, logits: softmax_over(logits, lambda n: same(i, n)),
    OtherClasses: lambda i, logits: softmax_over(logits, lambda n: n == i or not same(i, n)),
    NoKeys: lambda i, logits: [1 / BATCH] * BATCH,
    Observed: lambda i, logits: softmax_over(logits, lambda n: True),
}


@pytest.mark.parametrize("kind", WEIGHTS, ids=lambda kind: kind.__name__)
def test_a_control_weighs_the_values_that_it_keeps(kind):
    proxy, vectors = started(kind)
    found = proxy(vectors, INDEX)
    for modality in vectors:
        torch.testing.assert_close(found[modality], by_loops(proxy, vectors, modality, WEIGHTS[kind]))


def test_shuffled_values_are_those_of_r5_at_a_permutation():
    proxy, vectors = started(ShuffledValues)
    torch.manual_seed(5)
    found = proxy(vectors, INDEX)
    torch.manual_seed(5)
    for modality in vectors:
        order = torch.randperm(BATCH)
        values = vectors[modality][order]
        attention, lists = proxy.attentions[modality], proxy.graph.lists(INDEX, vectors)[modality]
        keys = proxy.graph.bank[modality][lists.index]
        calls = [
            attention(vectors[modality][None], keys[None, :, j], values[None], torch.ones(1, BATCH, dtype=torch.bool))
            for j in range(keys.shape[1])
        ]
        expected = (vectors[modality] + torch.stack(calls).mean(0)[0]) / 2
        assert order.tolist() != sorted(order.tolist())
        torch.testing.assert_close(found[modality], expected)


def test_shrinkage_mixes_each_clip_with_the_mean_of_the_batch():
    proxy = Shrinkage(WIDTH, ("audio",), mixture=MixtureOptions(residual="convex", aa_on="anchor"), weight=0.9)
    vectors = torch.rand(BATCH, WIDTH)
    mean = sum(vectors) / BATCH
    expected = [(vectors[i] + 0.1 * vectors[i] + 0.9 * mean) / 2 for i in range(BATCH)]
    torch.testing.assert_close(proxy({"audio": vectors}, INDEX)["audio"], torch.stack(expected))
    assert (proxy.aa_on, proxy.aa_mix) == ("anchor", 0.5)


def test_noise_has_the_planned_size_and_no_mean():
    torch.manual_seed(0)
    vectors = torch.rand(20_000, WIDTH) + 1
    noise = Noise(WIDTH, ("audio",), relative=0.5)({"audio": vectors}, torch.arange(20_000))["audio"] - vectors
    ratio = (noise.square().mean() / vectors.square().mean()).sqrt()
    assert ratio.item() == pytest.approx(0.5, rel=0.01)
    assert noise.mean(0).abs().max().item() < 0.05


def test_the_pilot_records_the_weight_on_other_clips_and_the_size_of_the_move():
    proxy, vectors = started(Observed)
    Observed.weights.clear()
    Observed.noise.clear()
    with torch.no_grad():
        found = proxy(vectors, INDEX)
    own = []

    def weighed(i, logits):
        weights = softmax_over(logits, lambda n: True)
        own.append(weights[i])
        return weights

    for place, modality in enumerate(vectors):
        own.clear()
        by_loops(proxy, vectors, modality, weighed)
        assert Observed.weights[place] == pytest.approx(1 - sum(own) / len(own))
        moved, size = found[modality] - vectors[modality], vectors[modality]
        assert Observed.noise[place] == pytest.approx(float(moved.norm() / size.norm()))


def rows_of(shift, count, deviation=0.002):
    """Return rows of `count` seeds: R5 at 0.4, no proxy at 0.38, each control below R5 by its shift."""
    draw = np.random.default_rng(3)
    base = draw.normal(0.4, 0.03, count)
    below = {R5: 0.0, NO_PROXY: 0.02, **dict.fromkeys(PLUG_INS, 0.02), **shift}
    return {
        name: {
            seed: Row(data_set="corsmal", method=name, options="{}", seed=seed,
                      test_map=float(base[seed] - gap + draw.normal(0, deviation)))
            for seed in range(count)
        }
        for name, gap in below.items()
    }  # fmt: skip


def test_nothing_is_compared_before_the_last_seed():
    assert differences(rows_of({}, 39), 40) == {}
    assert answer({"corsmal": {}}) == "No conclusion: not all planned seeds are finished."


def test_a_control_reproduces_loses_or_stays_open():
    found = differences(rows_of({"no keys": 0.0005, "shuffled values": 0.0075}, 40), 40)
    assert states(found) | {"shuffled values": ""} == {
        **dict.fromkeys(PLUG_INS, "loses"), "no keys": "reproduces", "shuffled values": ""
    }  # fmt: skip
    assert found["no keys"].p_equal < 0.05 < found[NO_PROXY].p_equal
    assert found[NO_PROXY].mean == pytest.approx(0.02, abs=2 * EQUAL / 10)


def test_the_sentence_needs_a_control_of_each_kind_and_no_objection():
    clear = differences(rows_of({"no keys": 0.0}, 40), 40)
    other = differences(rows_of({"no keys": 0.0}, 20), 20)
    first, second = PLANNED
    said = answer({first: clear, second: other})
    assert said.startswith("What no keys keep and own class alone")
    losing = differences(rows_of({}, 40), 40)
    assert "No explanation is supported" in answer({first: losing, second: other})
    objecting = {**other, "shuffled values": Against(-0.02, -0.03, -0.01, 1e-6, 1.0)}
    assert "No explanation is supported" in answer({first: clear, second: objecting})
    none = {**clear, NO_PROXY: Against(0.001, -0.01, 0.012, 0.8, 0.01)}
    assert "no gain to explain" in answer({first: none, second: other})


def test_the_runs_differ_from_r5_in_the_proxy_alone(tmp_path):
    runs = runs_of(STAGE, Experiment({"corsmal": SET}, 40, Ledger((tmp_path, HERE))))
    assert len(runs) == 8 * 40
    assert {run.key.seed for run in runs} == set(range(200, 240))
    own = {run.key.method: run.config.values for run in runs[:8]}
    assert {method: {key: one for key, one in values.items() if key != "proxy"} for method, values in own.items()} == {
        method: {key: one for key, one in own[R5].items() if key != "proxy"} for method in own
    }
    assert own[R5]["proxy"]["reading"] == "R5"
    kept = {key: one for key, one in own[R5]["proxy"].items() if key != "name"}
    assert {key: one for key, one in own["no keys"]["proxy"].items() if key != "name"} == kept
    assert own["convex shrinkage alone"]["proxy"]["weight"] == PLANNED["corsmal"].weight
    assert json.loads(runs[0].key.options)["proxy.k"] == 2
    assert runs_of(STAGE, Experiment({"other": SET}, 40, Ledger((tmp_path, HERE)))) == []


def test_the_page_counts_seeds_and_shows_no_difference_before_the_last(tmp_path):
    ledger = Ledger((tmp_path,))
    assert r5_section(ledger) == []
    rows = [row for own in rows_of({}, 3).values() for row in own.values()]
    ledger.add(STAGE, [replace(row, commit="c") for row in rows], {row.key: np.array([0.5]) for row in rows})
    page = "\n".join(r5_section(ledger))
    assert "3 of 40 seeds" in page
    assert "R5 minus" not in page
