"""Errors of models that cannot be used, in one line with the missing part."""

import json
import pickle
import re
import shutil
from contextlib import suppress

import pytest
import torch
from safetensors.torch import load_file, save_file

from aadml import compare, fit
from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub.loading import refused as converted
from aadml.feature_extraction.hub.snapshot import find, restored
from aadml.feature_extraction.jobs.job import choose_extractors, extract


@pytest.fixture
def copied(network, tmp_path):
    """Return a function that copies a network, to damage the copy."""

    def copy(name):
        return shutil.copytree(network(name), tmp_path / "copied")

    return copy


def refused(name, modality, message, **options):
    with pytest.raises(InputError, match=message) as caught:
        extractor(name, modality, options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "modality", "known"),
    [
        ("bert", "audio", "clap"),
        ("clip", "audio", "whisper"),
        ("dinov2", "text", "roberta"),
        ("clap", "visual", "clip"),
    ],
)
def test_a_model_of_another_type_is_an_error_with_the_known_families(network, name, modality, known):
    refused(
        f"hf:{network(name)}", modality, f"a model of type '{name}' has no known {modality} .*{known}.*docs/encoders.md"
    )


def test_an_unknown_type_is_an_error(copied):
    folder = copied("bert")
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt9"}))
    refused(f"hf:{folder}", "text", "a model of type 'gpt9'")
    (folder / "config.json").write_text("{}")
    refused(f"hf:{folder}", "text", "a model without a type")


@pytest.mark.parametrize("place", ["attn_implementation", "text_config", "experts_implementation"])
def test_a_kernel_on_the_hub_is_refused(copied, place):
    folder = copied("clip")
    config = json.loads((folder / "config.json").read_text())
    value = config[place] | {"_attn_implementation": "planted/kernel"} if place == "text_config" else "planted/kernel"
    (folder / "config.json").write_text(json.dumps(config | {place: value}))
    refused(f"hf:{folder}", "visual", "implementation is 'planted/kernel', which is code on the hub and is not run")
    files = {"config.json": (folder / "config.json").read_bytes()}
    with pytest.raises(InputError, match="planted/kernel"), restored("m", files):
        pass


def test_adapters_beside_the_weights_are_refused(copied):
    folder = copied("clip")
    (folder / "adapter_config.json").write_text("{}")
    refused(f"hf:{folder}", "visual", "adapter_config.json describes adapters.*; save the network with .merge_and_unl")


def test_code_among_the_small_files_of_a_saved_model_is_not_laid_out():
    files = {"config.json": b"{}", "vocab.txt": b"a", "tokenization.py": b"1 / 0", "..": b"", "x/sitecustomize.py": b""}
    with restored("m", files) as snapshot:
        assert {path.name for path in snapshot.folder.rglob("*")} == {"config.json", "vocab.txt"}


@pytest.mark.parametrize(("name", "modality"), [("clap", "audio"), ("clip", "visual"), ("bert", "text")])
def test_code_in_a_folder_is_not_run_and_nobody_is_asked(copied, name, modality, monkeypatch):
    folder = copied(name)
    (folder / "planted_of_hub.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    kinds = ("Config", "Model", "Tokenizer", "FeatureExtractor", "ImageProcessor", "Processor")
    names = {f"Auto{kind}": "planted_of_hub.X" for kind in kinds} | {"AutoTokenizer": ["planted_of_hub.X"] * 2}
    for file in ("config.json", "preprocessor_config.json", "tokenizer_config.json"):
        if (folder / file).is_file():
            content = json.loads((folder / file).read_text())
            own = {"feature_extractor_type", "image_processor_type", "processor_class", "tokenizer_class"} & set(
                content
            )
            (folder / file).write_text(json.dumps(content | dict.fromkeys(own, "X") | {"auto_map": names}))
    asked = []
    monkeypatch.setattr("builtins.input", lambda *words: asked.append(words) or "y")
    with suppress(InputError):
        extractor(f"hf:{folder}", modality)
    assert not asked
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("name", "modality", "missing", "message"),
    [
        (
            "bert",
            "text",
            "tokenizer.json",
            "contains none of tokenizer.json, vocab.txt, .*; copy one of these files beside the weights",
        ),
        (
            "clap",
            "audio",
            "preprocessor_config.json",
            "contains none of preprocessor_config.json, .*; copy one of these files beside the weights",
        ),
        (
            "clip",
            "visual",
            "preprocessor_config.json",
            "contains none of preprocessor_config.json, .*; copy one of these files beside the weights",
        ),
        ("bert", "text", "config.json", "contains no readable config.json"),
        ("bert", "text", "model.safetensors", "contains no weights"),
    ],
)
def test_a_missing_file_is_named(copied, name, modality, missing, message):
    folder = copied(name)
    (folder / missing).unlink()
    refused(f"hf:{folder}", modality, message)


@pytest.mark.parametrize("file", ["config.json", "preprocessor_config.json", "model.safetensors"])
@pytest.mark.parametrize(("name", "modality"), [("clap", "audio"), ("clip", "visual")])
def test_a_damaged_file_is_an_error_of_one_line(copied, name, modality, file):
    folder = copied(name)
    (folder / file).write_bytes(b"\0 nonsense")
    refused(f"hf:{folder}", modality, "copied|cannot be")


def test_missing_weights_and_other_shapes_are_errors(copied):
    folder = copied("bert")
    weights = load_file(folder / "model.safetensors")
    first = next(name for name in weights if "query" in name)
    save_file({n: w for n, w in weights.items() if n != first}, folder / "model.safetensors", {"format": "pt"})
    refused(
        f"hf:{folder}",
        "text",
        rf"the files lack weights of .* \(1 in total, the first is {re.escape(first)}\); pass a model",
    )
    save_file(weights | {first: torch.zeros(3, 3)}, folder / "model.safetensors", {"format": "pt"})
    refused(f"hf:{folder}", "text", "the shapes of its weights contradict its config.json")


def test_a_missing_package_and_a_full_memory_are_not_damaged_files(network):
    snapshot = find(str(network("bert")), None)
    with (
        pytest.raises(InputError, match=r" cannot be loaded \(protobuf is missing\); install the missing package$"),
        converted(snapshot, "cannot be loaded"),
    ):
        raise ImportError("protobuf is missing")
    with (
        pytest.raises(InputError, match=r" does not fit into the memory \(full\); free some memory, or"),
        converted(snapshot, "cannot be loaded"),
    ):
        raise torch.OutOfMemoryError("full")
    with pytest.raises(InputError, match=r"^the first message$"), converted(snapshot, "cannot be loaded"):
        raise InputError("the first message")


def test_a_pickle_is_read_without_running_code(copied):
    folder = copied("bert")
    as_safetensors = extractor(f"hf:{folder}", "text")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert extractor(f"hf:{folder}", "text").dimension == as_safetensors.dimension
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"x": _Trap(folder / "sprung")}, protocol=2))
    refused(f"hf:{folder}", "text", "cannot be loaded")
    assert not (folder / "sprung").exists()


class _Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (type(self.path).touch, (self.path,))


def test_neither_a_folder_nor_a_name_on_the_hub_is_an_error(network, tmp_path):
    refused("hf:nowhere", "audio", "neither a folder nor a name on the Hugging Face Hub")
    refused(f"hf:{tmp_path / 'nowhere'}", "audio", "neither a folder nor a name on the Hugging Face Hub")
    refused("hf:", "audio", "the model is missing; pass hf:MODEL")
    refused("hf-audio", "audio", "the model is missing; pass hf:MODEL")
    refused("hf:laion/clap-htsat-unfused", "audio", "its download from the Hugging Face Hub failed .*hf download")
    refused(f"hf:{network('clap')}@main", "audio", "is a folder, which has no revisions; leave out the revision 'main'")
    refused(f"hf:{network('clap')}#max", "audio", "no pooling of this network 'max'; choose from projection")
    refused(f"hf:{network('clap')}", "audio", "did you mean 'pooling'", poling="mean")


def test_another_pooling_of_a_sentence_encoder_is_an_error(copied):
    folder = copied("sentence encoder")
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_lasttoken": True}))
    refused(f"hf:{folder}", "text", "pools by pooling_mode_lasttoken")
    known = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(known))
    refused(f"hf:{folder}", "text", "pools by cls, mean, but only one of cls, mean is possible; pass a pooling")
    assert extractor(f"hf:{folder}#mean", "text").parameters["pooling"] == "mean"


@pytest.mark.parametrize(
    ("visual", "damage", "message"),
    [
        ("bert", None, "a model of type 'bert' has no known visual network"),
        ("clip#max", None, "no pooling of this network 'max'"),
        ("clip", "preprocessor_config.json", "contains none of .*; copy one of these files"),
        ("vjepa2", "video_preprocessor_config.json", "contains none of .*; copy one of these files"),
    ],
)
def test_the_second_network_is_checked_before_the_first_is_loaded(
    network, copied, monkeypatch, visual, damage, message
):
    def loaded(*_, **__):
        raise AssertionError("the first network was loaded")

    monkeypatch.setattr("aadml.feature_extraction.hub.networks.network_of", loaded)
    name, _, pooling = visual.partition("#")
    folder = copied(name)
    if damage:
        (folder / damage).unlink()
    names = {"audio": f"hf:{network('clap')}", "visual": f"hf:{folder}{'#' if pooling else ''}{pooling}", "text": None}
    with pytest.raises(InputError, match=message):
        choose_extractors(names)


def test_a_network_is_checked_before_recordings_are_measured(copied, tmp_path, monkeypatch):
    def measured(*_):
        raise AssertionError("the recordings were opened")

    monkeypatch.setattr("aadml.feature_extraction.jobs.job.windowed", measured)
    (tmp_path / "m.csv").write_text("id,media,label,split\na,a.mp4,x,train\n")
    (tmp_path / "a.mp4").write_bytes(b"")
    with pytest.raises(InputError, match="has no known audio network"):
        extract(tmp_path / "m.csv", tmp_path / "f.h5", audio=f"hf:{copied('bert')}", windows="10s")
    assert not (tmp_path / "f.h5").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "clip", "settings": ["towers.audio=hf:bert", "towers.visual=hf:clip"]},
        {"config": "audio_text", "settings": ["method.audio=hf:bert", "method.text=hf:bert"]},
    ],
)
def test_a_tower_is_checked_before_media_are_read(network, tmp_path, monkeypatch, settings):
    def read(*_, **__):
        raise AssertionError("the data were read")

    monkeypatch.setattr("aadml.runs.data.load_splits", read)
    monkeypatch.setattr("aadml.runs.prepare.load_splits", read)
    monkeypatch.chdir(network("bert").parent)
    (tmp_path / "m.csv").write_text("id,media,label,split,caption\na,a.wav,x,train,a dog\n")
    with pytest.raises(InputError, match="has no known audio network"):
        fit(tmp_path / "m.csv", **settings)


def test_a_tower_is_checked_before_the_first_run_of_a_study(network, tmp_path):
    (tmp_path / "m.csv").write_text("id,media,label,split,caption\na,a.wav,x,train,a dog\n")
    towers = [f"towers.audio=hf:{network('bert')}", f"towers.visual=hf:{network('clip')}"]
    with pytest.raises(InputError, match="has no known audio network"):
        compare(data=tmp_path / "m.csv", methods="clip", settings=towers, workers=0, output=tmp_path / "study")
    assert not list(tmp_path.glob("study/*/*"))
