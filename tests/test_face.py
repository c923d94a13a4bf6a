"""`import aadml`: the names, what they take, what they give back."""

import doctest
import importlib
import inspect
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
import torch
from annotated_types import Interval
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import aadml
from aadml.cli import cli
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError

REALS = ("float16", "float32", "float64", "longdouble", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


@pytest.fixture(scope="module")
def splits():
    return to_splits(synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))


@pytest.fixture(scope="module")
def model(splits):
    small = {"network.hidden": [16], "training.batch": 20}
    return aadml.fit(splits, loss="triplet", epochs=2, settings=small)


def python(program):
    done = subprocess.run([sys.executable, *program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_it_imports_no_heavy_package():
    heavy = ("torch", "numpy", "scipy", "sklearn", "h5py", "cv2", "av", "yaml")
    program = f"import sys, aadml; dir(aadml); print([name for name in {heavy} if name in sys.modules])"
    assert python(["-c", program]).strip() == "[]"


def test_all_its_names_are_there():
    assert sorted(aadml.__all__) == aadml.__all__ == sorted(dir(aadml))
    assert all(getattr(aadml, name) is not None for name in aadml.__all__)
    assert all(inspect.getdoc(getattr(aadml, name)) for name in aadml.__all__)


def test_the_names_that_types_are_checked_by_are_those_that_are_found():
    """The block of TYPE_CHECKING and the table of homes say the same."""
    source = Path(aadml.__file__).read_text()
    block = source.split("if TYPE_CHECKING:\n")[1].split("\n__all__")[0]
    found = {}
    exec("\n".join(line.strip() for line in block.splitlines()), found)
    for name in set(aadml.__all__) - {"__version__"}:
        assert inspect.unwrap(found[name]) is inspect.unwrap(getattr(aadml, name)), name


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(AttributeError, match=r"no attribute 'train'.*fit"):
        _ = aadml.train


def test_the_version_is_that_of_the_command_line():
    assert aadml.__version__ in python(["-m", "aadml", "--version"])


def test_a_source_tree_that_is_not_installed_has_no_version(monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", absent)
    result = CliRunner().invoke(cli, ["--version"], catch_exceptions=False)
    assert (result.exit_code, result.output) == (0, "aadml, version not installed\n")


def test_python_m_aadml_is_the_command_line():
    assert "sample-data" in python(["-m", "aadml", "--help"])


MODULES = [
    "aadml",
    "aadml.comparison.clips",
    "aadml.model.model",
    "aadml.runs.data",
    "aadml.runs.evaluate",
    "aadml.runs.fit",
    "aadml.runs.loading",
    "aadml.search.verify",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    found = [one for one in finder.find(module, globs={"aadml": aadml, "np": np}) if one.examples]
    assert found, f"{name} has no example; leave it out of MODULES"
    for one in found:
        runner.run(one)
    assert runner.failures == 0


@pytest.mark.parametrize("kind", REALS)
def test_numpy_of_any_real_type_gives_numpy(model, kind):
    rows = np.arange(18).reshape(3, 6).astype(kind)
    found = model.embed(audio=rows)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, model.embed(audio=rows.astype(np.float32)))


@pytest.mark.parametrize(
    "kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.uint8]
)
def test_tensors_of_any_real_type_give_tensors(model, kind):
    rows = torch.arange(18).reshape(3, 6).to(kind)
    found = model.embed(audio=rows)
    assert isinstance(found, torch.Tensor)
    assert torch.equal(found, torch.from_numpy(model.embed(audio=rows.float().numpy())))


def test_other_ways_to_hold_numbers_give_the_same(model):
    rows = np.arange(18, dtype=np.float64).reshape(3, 6)
    wanted = model.embed(audio=rows)
    wide = np.zeros((3, 12))
    wide[:, ::2] = rows
    big_endian = rows.astype(">f4")
    read_only = rows.copy()
    read_only.flags.writeable = False
    lists = [rows.tolist(), tuple(map(tuple, rows.tolist())), list(rows), [torch.from_numpy(row) for row in rows]]
    lists.append([torch.from_numpy(row).bfloat16() for row in rows])
    for given_rows in [wide[:, ::2], np.asfortranarray(rows), big_endian, read_only, *lists]:
        np.testing.assert_array_equal(model.embed(audio=given_rows), wanted)
    gradient = torch.from_numpy(rows).float().requires_grad_()
    np.testing.assert_array_equal(model.embed(audio=gradient).numpy(), wanted)


@pytest.fixture(scope="module")
def closed_form(splits):
    return aadml.fit(splits, method="cca", settings={"method.dimension": 3})


@pytest.mark.parametrize("modality", ["audio", "visual"])
def test_one_row_is_embedded_as_among_many(model, closed_form, splits, modality):
    """To the last bit by a closed form; a network's products may sum one row in another order."""
    many = splits.test[modality].numpy()
    for fitted, tolerance in ((closed_form, 0.0), (model, 3e-7)):
        found = fitted.embed(**{modality: many})
        for row in (0, 7, len(many) - 1):
            one = fitted.embed(**{modality: many[row]})
            assert one.shape == (found.shape[1],)
            np.testing.assert_allclose(one, found[row], rtol=0, atol=tolerance)


def test_several_modalities_give_a_dictionary(model, splits):
    found = model.embed(audio=splits.test["audio"], visual=splits.test["visual"][0].tolist())
    assert list(found) == ["audio", "visual"]
    assert isinstance(found["audio"], torch.Tensor)
    assert found["visual"].shape == (found["audio"].shape[1],)


NAN = np.full((2, 6), np.nan)
MASKED = np.ma.MaskedArray(np.zeros((2, 6)), mask=np.eye(2, 6))
WRONG = {
    "nothing": ({}, "no items were passed"),
    "an unknown modality": ({"sound": np.zeros((2, 6))}, "no modality 'sound'; choose from audio, visual"),
    "another width": ({"audio": np.zeros((2, 5))}, "the features have 5 dimensions; pass features of 6 dimensions"),
    "one number": ({"audio": 3.0}, r"shape \(\)"),
    "no rows and no width": ({"audio": []}, r"shape \(0,\)"),
    "three axes": ({"audio": np.zeros((1, 2, 6))}, r"shape \(1, 2, 6\)"),
    "NaN": ({"audio": NAN}, "row 0 contains NaN"),
    "infinity": ({"audio": [[0] * 6, [np.inf] * 6]}, "row 1 contains NaN or infinity"),
    "beyond float32": ({"audio": np.full((1, 6), 1e300)}, "in float32"),
    "complex": ({"audio": np.zeros((2, 6), complex)}, "has type complex128"),
    "complex tensor": ({"audio": torch.zeros(2, 6, dtype=torch.complex64)}, "has type complex64"),
    "truth values": ({"audio": np.zeros((2, 6), bool)}, "has type bool"),
    "text": ({"audio": np.full((2, 6), "a")}, "values of type <U1 cannot be converted"),
    "bytes": ({"audio": b"clip.wav"}, "cannot be converted to an array of numbers"),
    "None": ({"audio": None}, "values of type NoneType cannot be converted"),
    "a dictionary": ({"audio": {"a": 1}}, "values of type dict cannot be converted"),
    "ragged": ({"audio": [[1, 2], [3]]}, "not an array of numbers"),
    "integers beyond float64": ({"audio": [10**400] * 6}, "cannot be converted to an array of numbers"),
    "masked": ({"audio": MASKED}, "masked array"),
    "paths and numbers": ({"audio": ["a.wav", 3]}, "cannot be converted to an array of numbers"),
    "a name that is too long": ({"audio": "x" * 300}, "cannot be read or written"),
    "a file that is not there": ({"audio": "nowhere.wav"}, r"nowhere\.wav does not exist"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_embedded_is_refused_in_one_line(model, case):
    given_items, message = WRONG[case]
    with pytest.raises(InputError, match=message) as caught:
        model.embed(**given_items)
    assert "\n" not in str(caught.value)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=6) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@pytest.mark.slow
@given(ANYTHING)
def test_anything_at_all_is_embedded_or_refused(model, value):
    try:
        found = model.embed(audio=value)
    except InputError:
        return
    assert np.isfinite(found).all()


@given(ANYTHING)
def test_anything_at_all_as_labels_makes_clips_or_is_refused(value):
    try:
        clips = aadml.Clips.of(value, audio=[[1.0, 2.0]] * 3)
    except InputError:
        return
    assert len(clips) == 3


def test_clips_of_arrays_are_fitted(splits):
    train = splits.train
    names = [train.class_names[label] for label in train.labels]
    clips = aadml.Clips.of(names, ids=train.ids, audio=train["audio"].numpy(), visual=train["visual"].double())
    assert torch.equal(clips.labels, train.labels)
    assert clips.class_names == train.class_names
    model = aadml.fit(clips, method="cca", settings={"method.dimension": 3})
    assert model.evaluation is None
    assert model.embed(audio=train["audio"]).shape == (60, 3)


@pytest.mark.parametrize("data", [3, ["a"], {"audio": [[1.0]]}, np.zeros((3, 2))])
def test_data_that_is_none_is_refused(data):
    with pytest.raises(InputError, match="fit: data has type"):
        aadml.fit(data)


def test_an_argument_that_fit_does_not_have_is_refused_at_once():
    with pytest.raises(TypeError, match="los"):
        aadml.fit("synthetic:ave", los="triplet")


def test_its_similarity_is_the_one_that_is_evaluated(model, splits):
    from aadml.retrieval.evaluation import mean_average_precision

    embedded = model.embed(audio=splits.test["audio"].numpy(), visual=splits.test["visual"].numpy())
    scores = model.similarity(embedded["audio"], embedded["visual"])
    labels = splits.test.labels.numpy()
    relevant = labels[:, None] == labels
    precisions = []
    for row, wanted in zip(scores, relevant, strict=True):
        order = np.argsort(-row, kind="stable")
        hits = wanted[order]
        precisions.append((np.cumsum(hits) / (1 + np.arange(len(hits))))[hits].mean())
    assert len(np.unique(scores)) == scores.size, "ties would count by expectation"
    embeddings = model.embed_clips(splits.test)
    assert np.mean(precisions) == pytest.approx(mean_average_precision(embeddings, ("audio", "visual")), abs=1e-12)
    assert aadml.evaluate(model, data=splits).directions[0].map == pytest.approx(np.mean(precisions), abs=1e-12)


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_a_side_given_as_one_row_has_no_axis(model, splits, one, other):
    queries, gallery = (model.embed(**{m: splits.test[m].numpy()}) for m in ("audio", "visual"))
    scores = model.similarity(queries, gallery)
    found = model.similarity(queries[2] if one else queries, gallery[5] if other else gallery)
    np.testing.assert_array_equal(found, scores[(2 if one else slice(None), 5 if other else slice(None))])
    tensors = model.similarity(torch.from_numpy(queries), gallery)
    assert isinstance(tensors, torch.Tensor)


@pytest.mark.parametrize("k", [1, 4, 12])
def test_top_k_is_a_plain_argsort_with_ties_by_index(model, k):
    generator = np.random.default_rng(0)
    gallery = generator.normal(size=(6, 3))[np.array([0, 1, 2, 0, 1, 2, 3, 3, 4, 5, 5, 0])]  # equal rows: equal scores
    queries = generator.normal(size=(5, 3))
    found = model.top_k(queries, gallery, k=k)
    scores = model.similarity(queries, gallery)
    for row in range(5):
        order = sorted(range(12), key=lambda i: (-scores[row, i], i))[:k]
        assert found.indices[row].tolist() == order
        assert found.scores[row].tolist() == scores[row, order].tolist()
    alone = model.top_k(queries[1].tolist(), gallery, k=k)
    assert alone.indices.tolist() == found.indices[1].tolist()


@pytest.mark.parametrize("k", [0, -1, 13, 2.5, "3", None, True])
def test_a_k_that_cannot_be_is_refused(model, k):
    with pytest.raises(InputError, match=r"\bk (is|has type) "):
        model.top_k(np.ones((2, 3)), np.ones((12, 3)), k=k)


def test_the_representation_is_one_short_line(model):
    assert repr(model).startswith("<Model triplet: audio 6-d, visual 8-d, 3 classes, cosine, test MAP ")
    assert len(repr(model)) < 120


SMALL = {"network.hidden": [4], "training.batch": 20}


def test_none_is_no_setting_as_an_empty_mapping_is(splits):
    found = [aadml.fit(splits, method="random", settings=settings) for settings in (None, {}, ())]
    vectors = [model.embed(audio=np.eye(6, dtype=np.float32)) for model in found]
    assert all(np.array_equal(one, vectors[0]) for one in vectors)
    plain, named = (aadml.evaluate(found[0], data=splits, metrics=metrics) for metrics in (["recall@3"], "recall@3"))
    assert plain.to_json() == named.to_json()
    assert aadml.evaluate(found[0], data=splits, metrics=None).map_mean == plain.map_mean


@pytest.mark.parametrize("settings", ["proxy.k=1", 5, [5], {1, 2}])
def test_settings_of_another_kind_are_refused_in_a_line(splits, settings, tmp_path):
    for call in (
        lambda: aadml.fit(splits, settings=settings),
        lambda: aadml.compare(data=tmp_path / "f.h5", methods="cca", settings=settings, output=tmp_path / "out"),
    ):
        with pytest.raises(InputError, match=r'^settings: .* is not a mapping or a list of settings; pass .*k=5"\]$'):
            call()


def test_options_and_views_of_another_kind_are_refused_in_a_line(tmp_path):
    aadml.sample_data(tmp_path, clips=10, seconds=0.5)
    for options in ("hop=1", 5, ["audio"], {"audio": 5}):
        with pytest.raises(InputError, match=r"^options are .*; pass options by modality, as in "):
            aadml.extract(tmp_path / "manifest.csv", tmp_path / "f.h5", options=options)
    np.savez(tmp_path / "f.npz", a=np.ones((4, 2)))
    with pytest.raises(InputError, match=r"^views: 'flow=a' is not a mapping or a list of views"):
        aadml.read(tmp_path / "f.npz", views="flow=a")


def test_a_teacher_of_few_clips_says_that_its_batch_is_all_of_them(splits):
    notes = []
    settings = SMALL | {"neighbors.positives": "own", "neighbors.k": 3, "neighbors.space": "dcca"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aadml.methods.pairwise.matching.dcca_space", lambda train, seed: train.matrices)
        aadml.fit(splits, config="pairs", epochs=1, settings=settings, on_note=notes.append)
    said = "neighbors.space: the DCCA teacher trains on one batch of all 60 clips, as there are fewer than 200"
    assert said in notes


BOUNDED_ELSEWHERE = {
    "fit epochs", "fit k", "fit seed", "sample_data clips", "sample_data seed",  # options of a section
    "evaluate queries", "extract workers", "read captions", "report queries", "serve port",  # checked by the function
}  # fmt: skip


def test_every_whole_number_of_a_public_function_has_bounds():
    numbers, bounded = set(), set()
    for name in aadml.__all__:
        function = inspect.unwrap(getattr(aadml, name))
        for key, kind in get_type_hints(function, include_extras=True).items() if inspect.isfunction(function) else ():
            alternatives = [kind, *get_args(kind)]
            if key != "return" and any(get_args(each)[:1] == (int,) or each is int for each in alternatives):
                numbers.add(f"{name} {key}")
            if any(isinstance(mark, Interval) for each in alternatives for mark in getattr(each, "__metadata__", ())):
                bounded.add(f"{name} {key}")
    assert numbers - bounded - {"extract shard"} == BOUNDED_ELSEWHERE


@pytest.mark.parametrize("number", [0, -1, 10**30])
@pytest.mark.parametrize("key", ["seeds", "trials", "max_epochs"])
def test_a_number_of_a_study_outside_of_its_bounds_is_refused(tmp_path, monkeypatch, key, number):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^compare: {key} is {number}; pass a number from 1 to"):
        aadml.compare(data="synthetic:ave", losses="triplet", **{key: number})
    assert list(tmp_path.iterdir()) == []


UNCHECKED = {
    "Clips.of", "Index.update", "Model.embed_features", "Model.records", "Model.similarity",
}  # fmt: skip
"""Methods that check their arguments themselves, or pass them to a function that does."""


def test_the_arguments_of_public_methods_are_checked():
    methods = {
        f"{name}.{part}": getattr(method, "__func__", method)
        for name in ("Clips", "Index", "Model", "Splits")
        for part in dir(getattr(aadml, name))
        if not part.startswith("_") and callable(getattr(getattr(aadml, name), part))
        for method in [inspect.getattr_static(getattr(aadml, name), part)]
    }
    assert methods
    unchecked = {name for name, method in methods.items() if not hasattr(method, "__wrapped__")}
    taking = {name for name in unchecked if inspect.signature(methods[name]).parameters.keys() - {"self", "cls"}}
    assert taking == UNCHECKED
