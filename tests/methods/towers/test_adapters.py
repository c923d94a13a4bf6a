"""Low-rank adapters of pretrained networks: trained, saved without the network, merged, resumed."""

import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import aadml
from aadml.data.sources.loading import Loading
from aadml.data.sources.texts import Captions
from aadml.feature_extraction.ground.errors import InputError, MissingExtraError
from aadml.feature_extraction.hub import snapshot
from aadml.feature_extraction.hub.saved_tower import SavedTower
from aadml.methods.towers.adapters import add_adapters
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import FineTuning
from aadml.runs import environment
from aadml.runs.fit import resume_run

pytest.importorskip("transformers")
pytest.importorskip("peft")

LORA = {"towers.lora_rank": 2, "towers.lora_alpha": 8.0, "towers.learning_rate": 0.01, "towers.checkpointing": True}


class KilledError(Exception):
    pass


@pytest.fixture
def own(networks, settings, tmp_path):
    """Settings of a network in a folder of its own, with new weights, which no test has used."""
    folder = shutil.copytree(networks["clip"], tmp_path / "own")
    path = folder / "model.safetensors"
    weights = load_file(path)
    generator = torch.Generator().manual_seed(int.from_bytes(tmp_path.name.encode()[-3:]))
    for value in weights.values():
        if value.is_floating_point():
            value += 0.01 * torch.randn(value.shape, generator=generator)
    save_file(weights, path, {"format": "pt"})
    return settings | LORA | {"towers.visual": f"hf:{folder}"}


def fitted(videos, settings, **more):
    return aadml.fit(videos, settings=settings, device="cpu", method="pairs", **{"epochs": 2} | more)


def embedded(model, videos):
    clips = [str(videos.parent / f"{number}.mp4") for number in range(24, 30)]
    return np.concatenate([model.embed(visual=clips), model.embed(audio=clips)])


def test_adapters_alone_are_trained_and_start_as_the_network(networks):
    plain, adapted = (
        HubInput(f"hf:{networks['clip']}", "text", FineTuning(lora_rank=rank, blocks=1), None) for rank in (0, 2)
    )
    for network in (plain, adapted):
        network.train_blocks(frozen=False)
    assert torch.equal(adapted.eval()(trial(adapted)), plain.eval()(trial(plain)))
    trained = {name for name, p in adapted.network.named_parameters() if p.requires_grad}
    assert trained == {name.removeprefix("network.") for name in adapted.state_dict()} - {"files"}
    assert all(".lora_" in name for name in trained)
    assert {name.split(".lora_")[0] for name in trained} == set(adapted.saved.adapted)
    assert {".".join(name.split(".")[:3]) for name in adapted.saved.adapted} - {"text_projection"} == {
        "text_model.encoder.layers"
    }
    assert not any("layers.0" in name for name in trained)


def trial(network):
    return network.prepared(Captions(("a dog", "rain")), Loading(memory=1 << 20)).batch(torch.arange(2))


def test_a_saved_model_holds_adapters_and_finds_the_network(videos, own, tmp_path):
    model = fitted(videos, own)
    folder = model.save(tmp_path / "model")
    names = load_file(folder / "model.safetensors")
    assert {path.suffix for path in folder.iterdir()} == {".safetensors", ".json", ".md"}
    assert not [name for name in names if ".network." in name and ".lora_" not in name]
    assert any(float(value.abs().max()) > 0 for name, value in names.items() if ".lora_B" in name)
    assert "low-rank adapters of `own`" in (folder / "README.md").read_text()
    expected = embedded(model, videos)
    assert np.array_equal(embedded(aadml.load(folder), videos), expected)
    merged = aadml.load(folder).merged()
    np.testing.assert_allclose(embedded(merged, videos), expected, rtol=0, atol=1e-6)
    assert np.array_equal(embedded(model, videos), expected)
    whole = merged.save(tmp_path / "whole")
    shutil.move(tmp_path / "own", tmp_path / "elsewhere")
    np.testing.assert_allclose(embedded(aadml.load(whole), videos), expected, rtol=0, atol=1e-6)
    with pytest.raises(InputError, match=r"adapters of own need the weights of .*never used .* or have been"):
        aadml.load(folder)
    with pytest.raises(InputError, match="the model has no adapters to merge"):
        aadml.load(whole).merged()


def change_weights(path):
    weights = load_file(path)
    save_file({name: value + 1 if value.is_floating_point() else value for name, value in weights.items()},
              path, {"format": "pt"})  # fmt: skip


def test_other_weights_in_the_folder_are_refused(videos, own, tmp_path):
    folder = fitted(videos, own, epochs=1).save(tmp_path / "model")
    change_weights(tmp_path / "own" / "model.safetensors")
    with pytest.raises(
        InputError, match=r"adapters of own with weights .*; restore the weights that were used in training"
    ):
        aadml.load(folder)


def test_a_training_stopped_within_an_epoch_ends_in_the_same_bytes(videos, own, tmp_path):
    whole = fitted(videos, own, runs=tmp_path / "whole", epochs=3).folder
    epochs = []

    def stop(number):
        if len(epochs) == 1 and number == 2:
            raise KilledError

    with pytest.raises(KilledError):
        fitted(videos, own, runs=tmp_path / "stopped", epochs=3, on_epoch=epochs.append, on_step=stop)
    (folder,) = (tmp_path / "stopped").iterdir()
    resumed = resume_run(folder).folder
    for name in ("model.safetensors", "model.json"):
        assert (resumed / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize("options", [{}, {"towers.train": [], "towers.lora_rank": 0}])
def test_a_training_is_not_resumed_on_other_weights(videos, own, tmp_path, monkeypatch, options):
    def stop(record):
        raise KilledError

    with pytest.raises(KilledError):
        fitted(videos, own | options, runs=tmp_path / "stopped", on_epoch=stop)
    (folder,) = (tmp_path / "stopped").iterdir()
    change_weights(tmp_path / "own" / "model.safetensors")
    with pytest.raises(InputError, match=r"the initial weights of visual have changed since .*; restore these wei"):
        resume_run(folder)
    before = replace(environment.read_environment(folder), networks={})
    monkeypatch.setattr(environment, "read_environment", lambda run: before)  # a run of an earlier version
    assert resume_run(folder).evaluation


def test_the_extra_is_named(networks, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    network = HubInput(f"hf:{networks['clip']}", "text", FineTuning(lora_rank=2), None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aadml\[lora\]'"):
        network.train_blocks(frozen=False)


def test_the_source_of_the_weights_is_a_commit_or_a_checksum():
    hub = SavedTower("laion/clap", "abc", "MIT", {}, "projection", "0" * 64, 12)
    assert hub.base == "hf:laion/clap@abc#projection"
    assert replace(hub, revision=None).base == f"hf:{'0' * 64}#projection"


def test_a_file_that_names_the_weights_under_its_adapters_is_no_consent_to_their_download(monkeypatch):
    monkeypatch.setattr(snapshot, "_cached", lambda model, revision: None)
    saved = SavedTower("stranger/huge", "abc", "MIT", {}, "projection", "0" * 64, 12, ("text_model",))
    with pytest.raises(InputError, match=r"^the adapters of stranger/huge need .*, but hf:stranger/huge@abc was not"):
        HubInput("hf:stranger/huge", "text", FineTuning(), saved)


@pytest.mark.parametrize("names", [("text_model",), ("os.system",), (".*",)])
def test_names_of_a_file_are_layers_of_the_network_or_refused(networks, names):
    with pytest.raises(InputError, match="lora_rank is 0, but the model has adapters"):
        add_adapters(torch.nn.Linear(2, 2), names, rank=0, alpha=1.0)
    network = HubInput(f"hf:{networks['clip']}", "text", FineTuning(), None).network
    with pytest.raises(InputError, match="is not a linear layer of this network"):
        add_adapters(network, names, rank=2, alpha=1.0)
