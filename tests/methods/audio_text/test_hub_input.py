"""Pretrained networks of `transformers` in the towers: frozen, their head, their last blocks, or all of them."""

import csv
import shutil
from dataclasses import asdict, replace

import pytest
import torch
from safetensors.torch import load_file, save_file

import aadml
from aadml.data.sources.loading import Loading
from aadml.data.sources.texts import Captions
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.checksummed_json import FileSum, seal
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import FineTuning
from aadml.methods.training.session import Checkpoint, Session
from aadml.model.packing import pack_tensors
from tests.feature_extraction.hub import tiny
from tests.methods.audio_text.test_two_towers import TRAINING, made

pytest.importorskip("transformers")

ONE = replace(TRAINING, epochs=1)
OWN = {"heads": "none", "dimension": 12}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AADML_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture(scope="module")
def clap(tmp_path_factory):
    return tiny.written("clap", tmp_path_factory.mktemp("networks"))


@pytest.fixture
def towers(clap):
    return {"audio": f"hf:{clap}", "text": f"hf:{clap}", "hidden": 8, "dimension": 12, "cleaning": "spaces"}


def fitted(tones, context, options, training=ONE):
    torch.manual_seed(context.seed)
    method = made("audio-text", context, training, **options)
    method.fit(tones.train, tones.valid, Session())
    return method


def changed(method, context, options):
    """Name the modules of the networks that training changed."""
    torch.manual_seed(context.seed)
    before = made("audio-text", context, ONE, **options).state()
    after = method.state()
    names = {key for key in after if ".network.network." in key and not torch.equal(after[key], before[key])}
    return {key.split(".network.network.")[1] for key in names}


def test_vectors_are_those_of_the_extractor_to_the_last_bit(tones, clap, tmp_path):
    sounds = tones.test["audio"]
    with (tmp_path / "m.csv").open("w", newline="") as file:
        rows = [[str(i), sounds.paths[i], "x", "train", f"a dog {i}"] for i in sounds.items.unique().tolist()]
        csv.writer(file).writerows([["id", "media", "label", "split", "text"], *rows])
    aadml.extract(tmp_path / "m.csv", tmp_path / "f.h5", audio=f"hf:{clap}", visual=None, text=f"hf:{clap}", workers=1)
    found = read_features(tmp_path / "f.h5").features
    audio, text = (HubInput(f"hf:{clap}", modality, FineTuning(), None) for modality in ("audio", "text"))
    source = audio.prepared(sounds, Loading(memory=1 << 20))
    assert torch.equal(audio.eval()(source.batch(torch.arange(0, len(sounds), 2))), torch.from_numpy(found["audio"]))
    source = text.prepared(Captions(tuple(row[4] for row in rows)), Loading(memory=1 << 20))
    assert torch.equal(text.eval()(source.batch(torch.arange(len(rows)))), torch.from_numpy(found["text"]))


def test_training_passes_a_batch_as_it_is_described(clap):
    text = HubInput(f"hf:{clap}", "text", FineTuning(), None)
    text.train_blocks(frozen=False)
    captions = ("rain", "a dog", "a cat", "a dog barks at the rain", "wind")
    source = text.prepared(Captions(captions), Loading(memory=1 << 20))
    batch = source.batch(torch.arange(5))
    batch = replace(batch, clips=(*batch.clips, (), batch.clips[0] + batch.clips[3]), present=torch.arange(7) != 5)
    expected = text.eval()(batch)
    text.training = True  # its modules drop nothing
    found = text(batch)
    torch.testing.assert_close(found.detach(), expected, rtol=1e-4, atol=1e-5)
    assert not found[5].any()
    torch.testing.assert_close(found[6], (found[0] + found[3]) / 2, rtol=1e-4, atol=1e-5)
    alone = text(batch.select(torch.tensor([3])))
    torch.testing.assert_close(alone, found[3:4], rtol=1e-4, atol=1e-5)


def test_new_heads_alone_are_trained_over_frozen_networks(tones, context, towers):
    options = towers | {"freeze": "both"}
    assert changed(fitted(tones, context, options), context, options) == set()


def test_adapters_alone_are_trained_and_saved(tones, context, towers):
    pytest.importorskip("peft")
    options = towers | OWN | {"lora_rank": 2, "blocks": 1}
    names = changed(fitted(tones, context, options), context, options)
    assert names
    assert all(".lora_" in name for name in names)
    torch.manual_seed(context.seed)
    state = made("audio-text", context, ONE, **options).state()
    assert not [name for name in state if ".network.network." in name and ".lora_" not in name]


def write_run(folder, context, options):
    torch.manual_seed(context.seed)
    first = made("audio-text", context, ONE, **options)
    weights = pack_tensors(Checkpoint({f"method.{k}": v for k, v in first.state().items()}))
    architecture = {m: asdict(first.architecture().tower(m)) for m in ("audio", "text")}
    facts = {"method": {"arguments": {"lora_alpha": 16.0}}, "architecture": architecture}
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "model.json").write_bytes(seal({"weights": vars(FileSum.of(weights)), "facts": facts}))


def test_a_run_without_adapters_does_not_start_a_training_of_adapters(tones, context, towers, tmp_path):
    pytest.importorskip("peft")
    options = towers | OWN | {"blocks": 1}
    write_run(tmp_path, context, options)
    with pytest.raises(InputError, match=r"the tensor '.* is missing or has another size; pass a run of"):
        fitted(tones, context, options | {"lora_rank": 2, "start": str(tmp_path)})


def test_adapters_of_a_run_start_only_a_training_of_the_same_network(tones, context, towers, clap, tmp_path):
    pytest.importorskip("peft")
    options = towers | OWN | {"lora_rank": 2, "blocks": 1, "start": str(tmp_path)}
    write_run(tmp_path, context, options | {"start": ""})
    fitted(tones, context, options)
    other = shutil.copytree(clap, tmp_path / "other")
    tensors = load_file(other / "model.safetensors")
    save_file({k: v + 1 if v.is_floating_point() else v for k, v in tensors.items()}, other / "model.safetensors")
    for changes, modality in (
        ({"lora_alpha": 64.0}, "audio"),
        ({"blocks": 0}, "audio"),
        ({"text": f"hf:{other}"}, "text"),
    ):
        with pytest.raises(InputError, match=f"has adapters of another {modality} network, of other layers, or of ano"):
            fitted(tones, context, options | changes)


@pytest.mark.slow
def test_own_projections_the_last_block_or_all_are_trained(tones, context, towers):
    found = {}
    for blocks in (0, 1, "all"):
        options = towers | OWN | {"blocks": blocks}
        found[blocks] = changed(fitted(tones, context, options), context, options)
    assert {key.split(".")[0] for key in found[0]} >= {"audio_projection", "text_projection"}
    assert not {key for key in found[0] if ".layers." in key or ".layer." in key or "embed" in key}
    blocks = {".".join(key.split(".")[:4]) for key in found[1] - found[0]}
    assert blocks == {"audio_model.audio_encoder.layers.3", "text_model.encoder.layer.1"}
    assert any("patch_embed" in key for key in found["all"])
    assert any("word_embeddings" in key for key in found["all"])


def test_only_training_reads_vectors_of_frozen_networks_from_disk(tones, context, towers, monkeypatch):
    options = towers | {"freeze": "both"}
    first = fitted(tones, context, options)
    expected = first.embed(tones.valid["text"], "text")
    computed, real = [], HubInput._described
    monkeypatch.setattr(HubInput, "_described", lambda self, batch: computed.append(len(batch)) or real(self, batch))
    torch.manual_seed(context.seed)
    again = made("audio-text", context, ONE, **options)
    again.fit(tones.train, tones.valid, Session())
    assert computed == []
    assert all(torch.equal(value, first.state()[key]) for key, value in again.state().items())
    assert torch.equal(again.embed(tones.valid["text"], "text"), expected)
    assert computed  # an embedding comes from the network, which is audited


def test_an_item_is_embedded_as_if_it_were_alone(tones, context, towers):
    method = fitted(tones, context, towers)
    for modality in ("audio", "text"):
        together = method.embed(tones.test[modality], modality)
        alone = torch.cat([method.embed(tones.test[modality].select(torch.tensor([i])), modality) for i in (0, 7, 13)])
        torch.testing.assert_close(alone, together[[0, 7, 13]], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_equal_seeds_give_equal_weights(tones, context, towers):
    one, other = (fitted(tones, context, towers) for _ in range(2))
    assert all(torch.equal(value, other.state()[key]) for key, value in one.state().items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"heads": "none", "dimension": 8},
            r"dimension is 8, but the audio network has dimension 12 and no head; set method.dimension to 12",
        ),
        ({"blocks": 9}, r"blocks is 9, but the number of blocks of this network is 4; choose 0 to 4"),
        ({"blocks": "some"}, r"blocks is \"some\"; pass a whole number .* or one of all"),
        ({"audio": "hg:clap"}, r"one of cnn10, cnn14, resnet38 or hf:MODEL\[@revision\]\[#pooling\]"),
        ({"text": "hf:"}, r"one of bert, word2vec or hf:MODEL"),
        ({"audio": "hf:absent"}, "neither a folder nor a name"),
    ],
)
def test_what_cannot_be_built_is_said(context, towers, options, message):
    with pytest.raises(InputError, match=message) as caught:
        made("audio-text", context, ONE, **towers | options)
    assert "\n" not in str(caught.value)


def test_nothing_to_train_is_refused(tones, context, towers):
    with pytest.raises(InputError, match="nothing can be trained"):
        made("audio-text", context, ONE, **towers | OWN | {"freeze": "both"})


@pytest.mark.slow
def test_a_curriculum_trains_pretrained_networks_too(tones, context, towers):
    options = towers | {"ancillary_epochs": 0, "dedupe": False, "shares": (1.0, 1.0, 1.0)}
    method = made("3cmlf", context, replace(ONE, epochs=3), **options)
    method.fit(tones.train, tones.valid, Session())
    assert torch.isfinite(method.embed(tones.test["audio"], "audio")).all()
