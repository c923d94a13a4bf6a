"""Flags that would change nothing beside the others are refused in one line."""

import numpy as np
import pytest

import aadml as toolkit
from aadml.feature_extraction.ground.errors import InputError
from aadml.search.build_index import build


@pytest.fixture
def embeddings(tmp_path):
    random, place = np.random.default_rng(0), tmp_path / "e.npz"
    np.savez(place, audio=random.normal(size=(12, 4)), visual=random.normal(size=(12, 4)), label=np.arange(12) % 3)
    return place


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--data", "f.h5"], "data applies only to a model"),
        (["--allow-other-features"], "allow_other_features applies only to a model on other data"),
        (["--per-query"], "--per-query applies to --json only"),
    ],
)
def test_of_evaluate(aadml, embeddings, arguments, says):
    code, out, err = aadml("evaluate", "--embeddings", embeddings, *arguments)
    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--seed", "4"], "seed 4 has an effect only with a new division; pass --split"),
        (["--audio", "x"], "views 'audio=x' cannot be chosen for a feature file; leave out views"),
    ],
)
def test_of_convert(aadml, features, tmp_path, arguments, says):
    code, _, err = aadml("convert", features, tmp_path / "g.h5", *arguments)
    assert code == 2
    assert says in err
    assert not (tmp_path / "g.h5").exists()


def test_of_inspect(aadml, features):
    code, _, err = aadml("inspect", features, "--view", "flow=raft")
    assert code == 2
    assert "views 'flow=raft' cannot be chosen for a feature file; leave out views" in err


def test_the_first_label_of_clips_with_one_is_said_to_be_all(aadml, features, tmp_path):
    code, _, err = aadml("convert", features, tmp_path / "g.h5", "--first-label")
    assert code == 0
    assert "--first-label changed nothing: no clip has several labels" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--audio", "vggish"], "the source has features already; leave out audio"),
        (["--weights", "untrained", "--set", "audio.variant=pca"], "features already; leave out options, weights"),
        (["--allow-other-features"], "allow_other_features applies only to a feature file with a model"),
    ],
)
def test_of_index(aadml, features, tmp_path, arguments, says):
    code, _, err = aadml("index", features, "-o", tmp_path / "i", *arguments)
    assert code == 2
    assert says in err
    assert not (tmp_path / "i").exists()


def test_of_an_index_whose_model_names_the_extractors(tmp_path):
    (tmp_path / "m.csv").write_text("id,media\n")
    with pytest.raises(InputError, match="index: the model determines the extractors; leave out audio"):
        build(tmp_path / "m.csv", tmp_path / "i", model="run", audio="vggish")


@pytest.mark.parametrize("arguments", [["-k", "3"], ["--where", "label='a'"], ["--to", "audio"], ["--json"]])
def test_of_search_beside_export(aadml, features, tmp_path, arguments):
    assert aadml("index", features, "-o", tmp_path / "i")[0] == 0
    code, _, err = aadml("search", tmp_path / "i", "--export", tmp_path / "v", *arguments)
    assert code == 2
    assert f"--export writes all vectors, so {arguments[0]} has no effect; omit {arguments[0]}" in err
    assert not list(tmp_path.glob("v*"))


def test_of_audit_and_report(features, tmp_path):
    with pytest.raises(InputError, match="protocol bank applies only to a run or model; leave out --protocol"):
        toolkit.audit(data=features, command="none", protocol="bank")
    with pytest.raises(InputError, match="an external encoder needs data"):
        toolkit.audit(command="none", protocol="inductive")
    with pytest.raises(
        InputError, match="allow_other_features applies only to data other than those of the run; pass data"
    ):
        toolkit.report(tmp_path, allow_other_features=True)


@pytest.mark.parametrize("method", ["cca", "dscmr"])
def test_of_train_where_a_method_knows_no_proxy(aadml, features, method):
    code, _, err = aadml("train", "--data", features, "--method", method, "--k", "2")
    assert code == 2
    assert f"proxy: method {method} has no such key" in err
