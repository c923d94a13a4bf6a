"""Pretrained networks trained by several processes: the figures and the weights of one process."""

import pytest
from safetensors.torch import load_file

import aadml
from tests.comparison.processes.test_torchrun import ended, records, start

pytest.importorskip("transformers")


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"towers.lora_rank": 2, "towers.micro_batch": 2, "towers.checkpointing": True}])
def test_two_processes_train_networks_as_one_does(videos, settings, tmp_path, more):
    options = settings | {"training.batch": 5, "training.optimizer": "sgd", "training.learning_rate": 0.1} | more
    words = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    code, out, said = ended(
        start(tmp_path, "train", "--data", videos, "--method", "pairs", "--epochs", 2, "--runs", "runs", *words)
    )
    assert code == 0, said
    one = aadml.fit(videos, method="pairs", epochs=2, settings=options, device="cpu", runs=tmp_path / "one").folder
    for several, single in zip(records(tmp_path / out[-1]), records(one), strict=True):
        assert several == pytest.approx(single, rel=1e-4, abs=1e-6)
    weights = [load_file(folder / "model.safetensors") for folder in (tmp_path / out[-1], one)]
    assert weights[0].keys() == weights[1].keys()
    moved = [key for key in weights[1] if ".network." in key]
    assert moved
    assert all(weights[0][key].allclose(weights[1][key], atol=1e-5) for key in weights[1])
