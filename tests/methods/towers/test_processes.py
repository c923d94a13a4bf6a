"""Pretrained networks trained by several processes: the figures and the weights of one process."""

import pytest
from safetensors.torch import load_file

import aadml
from tests.comparison.processes.test_torchrun import ended, records, start
from tests.feature_extraction.hub import tiny

pytest.importorskip("transformers")


LESS = {"lora_rank": 2, "micro_batch": 2, "checkpointing": True}
STEPS = {"training.batch": 5, "training.optimizer": "sgd", "training.learning_rate": 0.1}


def same_as_one(data, method, options, folder):
    """Train in two processes and in one, and compare records and weights."""
    words = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    code, out, said = ended(
        start(folder, "train", "--data", data, "--method", method, "--epochs", 2, "--runs", "runs", *words)
    )
    assert code == 0, said
    one = aadml.fit(data, method=method, epochs=2, settings=options, device="cpu", runs=folder / "one").folder
    for several, single in zip(records(folder / out[-1]), records(one), strict=True):
        assert several == pytest.approx(single, rel=1e-4, abs=1e-6)
    weights = [load_file(place / "model.safetensors") for place in (folder / out[-1], one)]
    assert weights[0].keys() == weights[1].keys()
    assert any(".network." in key for key in weights[1])
    assert all(weights[0][key].allclose(weights[1][key], atol=1e-5) for key in weights[1])


@pytest.mark.slow
@pytest.mark.parametrize(("method", "more"), [("aadml", {}), ("pairs", {f"towers.{k}": v for k, v in LESS.items()})])
def test_two_processes_train_networks_as_one_does(videos, settings, tmp_path, method, more):
    same_as_one(videos, method, settings | STEPS | more, tmp_path)


@pytest.mark.slow
def test_two_processes_train_sound_and_captions_as_one_does(videos, tmp_path_factory, tmp_path):
    clap = tiny.written("clap", tmp_path_factory.mktemp("clap"))
    options = {"audio": f"hf:{clap}", "text": f"hf:{clap}", "heads": "none", "dimension": 12, "cleaning": "spaces"}
    same_as_one(videos, "audio-text", {f"method.{k}": v for k, v in (options | LESS).items()} | STEPS, tmp_path)
