"""Options of earlier versions: accepted at the value that the code implements, and refused at any other value."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

import aadml
from aadml.configuration.from_arguments import assemble
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.checksummed_json import seal, unseal
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.training.settings import Training
from aadml.model.packing import read_model_record
from aadml.search.encoders import digest_of

REMOVED = [
    ("aadml", "training.micro_batch", 0, 8),
    ("aadml", "training.valid_every", 1, 2),
    ("3cmlf", "method.pair", "sum", "audio"),
    ("3cmlf", "method.easy_builder", "auto", "greedy"),
    ("3cmlf", "method.hard_builder", "auto", "greedy"),
    ("3cmlf", "method.rebuild_every", 0, 1),
    ("3cmlf", "method.freeze_scope", "encoder", "backbone"),
    ("xie", "method.form", "mean", "max-word"),
    ("tnn-c-cca", "method.order", "cca-first", "tnn-first"),
    ("tnn-c-cca", "method.share", False, True),
    ("tnn-c-cca", "method.score", "squared-euclidean", "cosine"),
    ("msnsca", "method.memory", 0, 5),
    ("tnn-c-cca", "method.ridge", 1e-4, 0.1),
    ("tnn-c-cca", "method.pair_weight", 0.2, 1.0),
    ("msnsca", "method.kernels", [3, 5, 7], [3, 5]),
    ("msnsca", "method.attention_heads", 1, 2),
    ("vae-cca", "method.vae_weight", 1e-4, 1.0),
    ("agah", "method.code_weight", 1e-3, 1.0),
    ("acmr", "method.label_weight", 100.0, 1.0),
    ("dscmr", "method.activation", "relu", "tanh"),
    ("dcil", "method.instance", "clip", "class"),
    ("clip", "method.label_aware", False, True),
    ("bic-net", "method.attention_heads", 4, 2),
    ("eics", "method.triplet_weight", 1.0, 0.5),
    ("pairs", "method.duplicates", "mask", "keep"),
    ("pairs", "neighbors.own_share", None, 0.5),
    ("few-labels", "method.labeled", 200, 100),
    ("cctl", "method.metric_weight", 1.0, 0.5),
    ("tlca", "method.lines", ["same-class", "anchor-negative"], []),
    ("video-adviser-lite", "method.inner_weight", 1.0, 0.5),
    ("aadml", "network.activation", "tanh", "relu"),
]


@pytest.mark.parametrize(("method", "key", "kept", "other"), REMOVED)
def test_a_removed_option_is_accepted_only_at_the_value_that_is_implemented(method, key, kept, other):
    assert assemble(method=method, settings={key: kept}) == assemble(method=method)
    with pytest.raises(InputError, match=rf"{key} is .* was removed"):
        assemble(method=method, settings={key: other})


@pytest.mark.parametrize("method", ["audio-text", "3cmlf", "xie"])
@pytest.mark.parametrize(("key", "former"), [("workers", 2), ("log_mel", "device")])
def test_a_removed_option_that_changed_no_result_is_accepted_at_any_value(method, key, former):
    assert assemble(method=method, settings={f"method.{key}": former}) == assemble(method=method)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_model_file_with_a_removed_option_of_its_networks_is_read(tmp_path, workers):
    model = aadml.fit(to_splits(synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8))), method="random")
    towers = PretrainedOptions(audio="hf:some-model")
    path = model.save(tmp_path / "model") / "model.json"
    content = unseal(path.read_bytes(), path)
    facts = {**content["facts"], "towers": {**vars(towers), "workers": workers}}
    path.write_bytes(seal({**content, "facts": facts}))
    assert read_model_record(path.parent).facts.towers == towers


FORMER_TOWERS = ("audio", "visual", "text", "blocks", "train", "memory_mib", "disk_mib")
"""Options of the section `towers` that indexes of the second edition know, beside `workers`."""


def test_removed_and_added_options_leave_the_checksum_of_an_indexed_model():
    model = aadml.fit(to_splits(synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8))), method="random")
    towered = replace(model, facts=replace(model.facts, towers=PretrainedOptions(audio="hf:some-model")))
    facts = towered.facts.to_json()
    former = {name: value for name, value in facts["training"].items() if name not in ("warmup", "compile")}
    facts = {**facts, "training": {**former, **Training.removed_options}}
    facts["towers"] = {**{name: facts["towers"][name] for name in FORMER_TOWERS}, "workers": 0}
    expected = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, values in sorted({**model.method.state(), **model.scaling.state()}.items()):
        expected.update(name.encode() + np.ascontiguousarray(values.numpy()).tobytes())
    assert digest_of(towered) == expected.hexdigest()


def test_a_removed_option_of_a_section_is_no_option_of_the_method():
    with pytest.raises(InputError, match=r"method\.activation: aadml has no such option"):
        assemble(method="aadml", settings={"method.activation": "tanh"})


@pytest.mark.parametrize("loss", ["daml-triplet", "hdml-n-pair"])
@pytest.mark.parametrize(
    ("key", "kept", "other"),
    [("positives", "one", "all"), ("negatives", "random", "hardest"), ("seed", 0, 1), ("l2", 3e-3, 0.0)],
)
def test_triples_of_generated_negatives_are_drawn(loss, key, kept, other):
    assert assemble(loss=loss, settings={f"loss.{key}": kept}) == assemble(loss=loss)
    with pytest.raises(InputError, match=rf"loss\.{key} is .* was removed"):
        assemble(loss=loss, settings={f"loss.{key}": other})


def test_the_coefficients_of_triplet_weighted_are_fixed():
    settings = {"loss.positive": [0.5, -0.7, 0.2], "loss.negative": [0.03, -0.4, 0.9]}
    assert assemble(loss="triplet-weighted", settings=settings) == assemble(loss="triplet-weighted")
    with pytest.raises(InputError, match=r"loss\.positive is .* was removed"):
        assemble(loss="triplet-weighted", settings={"loss.positive": [1.0, 0.0, 0.0]})


@pytest.mark.parametrize("loss", ["proxy-nca", "proxy-anchor", "soft-triple", "arcface"])
def test_the_initial_length_of_class_proxies_is_fixed(loss):
    length = 1.0 if loss == "arcface" else 0.01
    assert assemble(loss=loss, settings={"loss.length": length}) == assemble(loss=loss)
    with pytest.raises(InputError, match=r"loss\.length is .* was removed"):
        assemble(loss=loss, settings={"loss.length": 0.5})
