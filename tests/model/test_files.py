"""Model folders are checked as they are read, and a folder that is not a model is named for what it is."""

import json
import resource
import shutil
from pathlib import Path

import pytest
import torch

import aadml
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.checksummed_json import CHECKSUM, seal
from aadml.feature_extraction.ground.errors import InputError
from aadml.model.files import is_model, load_model, verify_model


@pytest.fixture
def folder(tmp_path):
    return aadml.fit("synthetic:ave", method="random").save(tmp_path / "model")


def load(folder):
    return load_model(folder, torch.device("cpu"))


def test_a_saved_model_is_loaded_and_verified(folder):
    assert is_model(folder)
    assert verify_model(folder) == []
    assert load(folder).facts.label == "random"


@pytest.mark.parametrize("name", ["model.safetensors", "model.json"])
def test_a_changed_file_is_named(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    (damage,) = verify_model(folder)
    assert name in damage
    with pytest.raises(InputError, match=name):
        load(folder)


def test_missing_weights_are_named(folder):
    (folder / "model.safetensors").unlink()
    (damage,) = verify_model(folder)
    assert damage.endswith(
        "cannot be read (No such file or directory), so the model is incomplete; restore the file from a copy"
    )


def test_other_folders_are_named_for_what_they_are(folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    for place, message in {
        tmp_path / "nowhere": "does not exist; pass a run",
        folder / "model.json": "is a file, not a folder",
        tmp_path / "run": "is a run whose training was not finished; continue the training with",
        tmp_path: "is neither a run nor a model .the folder has no model.json.",
    }.items():
        with pytest.raises(InputError, match=message):
            load(place)


def resealed(folder, change):
    place = folder / "model.json"
    content = json.loads(place.read_text())
    change(content["facts"])
    place.write_bytes(seal({key: value for key, value in content.items() if key != CHECKSUM}))


def in_method(**arguments):
    return lambda facts: facts["method"]["arguments"].update(arguments)


def in_network(**options):
    return lambda facts: facts["method"]["arguments"]["network"].update(options)


def of_endless_bert(facts):
    facts["architecture"]["bert"] = {
        "vocab_size": 40, "num_hidden_layers": 10**9, "hidden_size": 4, "num_attention_heads": 1, "intermediate_size": 4
    }  # fmt: skip


def with_unused_adapters(facts):
    tower = {"model": "a/b", "revision": None, "license": "", "config": {}, "pooling": "mean", "weights": "0" * 64}
    facts["architecture"]["audio"] = tower | {"dimension": 8, "adapted": ["q"]}
    in_network(hidden=[20000, 20000])(facts)


CAPTIONS = Path(__file__).parent.parent / "second_edition" / "files" / "model_of_captions"
MISMATCHES = {
    "an endless loop of layers": ("captions", of_endless_bert),
    "a network of 12.8 GB": ("pairs", in_network(hidden=[40000, 40000])),
    "a network of 10^18 units": ("pairs", in_network(hidden=[10**9, 10**9])),
    "a network of 1.6 GB, and adapters": ("pairs", with_unused_adapters),
    "another width": ("pairs", in_network(hidden=[33])),
    "another depth": ("pairs", in_network(hidden=[32, 32])),
    "no number": ("pairs", in_network(hidden="wide")),
    "a dropout of 10^308": ("pairs", in_network(dropout=1e308)),
    "a negative width": ("pairs", in_network(hidden=[-1])),
    "an endless loop of blocks": ("bic-net", in_method(depth=1_000_000)),
    "more dimensions": ("pairs", lambda facts: facts["dimensions"].update(audio=10**12)),
    "fewer dimensions in closed form": ("cca", lambda facts: facts["dimensions"].update(audio=3)),
    "another modality in closed form": ("cca", lambda facts: facts["dimensions"].update(text=3)),
    "more classes": ("dscmr", lambda facts: facts.update(class_names=[str(n) for n in range(50)])),
    "vectors of 40 GB": ("random", in_method(dimension=10**10)),
    "another method": ("pairs", lambda facts: facts["method"].update(name="cca", arguments={"dimension": 3})),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    settings = {"pairs": ["network.hidden=[32]", "method.dimension=16"], "dscmr": ["method.hidden=[32]"]}
    settings["bic-net"] = ["method.hidden=[32]", "method.dimension=32", "method.tokens=4", "method.depth=1"]
    place = tmp_path_factory.mktemp("saved")
    data = to_splits(synthetic(classes=4, train=40, valid=12, test=12, dimensions=(12, 14), difficulty=0.0, seed=3))
    shutil.copytree(CAPTIONS, place / "captions")
    for method in {method for method, _ in MISMATCHES.values()} - {"captions"}:
        epochs = 1 if method in settings else None
        aadml.fit(data, method=method, settings=settings.get(method, ()), epochs=epochs).save(place / method)
    return place


@pytest.mark.parametrize("case", MISMATCHES)
def test_a_model_json_of_another_model_is_refused_before_memory_is_allocated(saved, tmp_path, case):
    method, change = MISMATCHES[case]
    folder = tmp_path / "model"
    shutil.copytree(saved / method, folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    load(folder)
    resealed(folder, change)
    with pytest.raises(InputError) as refused:
        load(folder)
    assert "\n" not in str(refused.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB
