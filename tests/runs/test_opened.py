"""What a training left is opened again: on which data, and what is said where something is missing or of others."""

import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.clips import Clips
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.checksummed_json import FileSum
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.audit import Finding, Verdict
from aadml.runs import audit, model_data
from aadml.runs.evaluate import Options, evaluate_under_each
from aadml.runs.loading import load_run, read_evaluation
from aadml.runs.manifest import LOG, MANIFEST, is_finished, is_run, read_file, read_manifest
from aadml.runs.model_data import nonempty_split, read_for
from aadml.runs.store import new_run

CONTENT = synthetic(classes=3, train=30, valid=9, test=12, dimensions=(6, 8), difficulty=0.2)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run and its data, which nobody changes."""
    place = tmp_path_factory.mktemp("opened")
    write_features(place / "own.h5", CONTENT)
    return aadml.fit(place / "own.h5", method="cca", settings={"method.dimension": 2}, runs=place / "runs")


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made.folder, tmp_path / "run")


@pytest.fixture
def other(tmp_path):
    """Write a feature file that is `CONTENT` but for some changes."""

    def other(**changes):
        write_features(tmp_path / "other.h5", replace(CONTENT, **changes))
        return tmp_path / "other.h5"

    return other


def test_a_run_is_opened_with_its_data_as_they_were(made, run):
    opened = load_run(run)
    assert opened.config.data == str(made.folder.parents[1] / "own.h5")
    assert [len(opened.splits[name]) for name in ("train", "valid", "test")] == [30, 9, 12]
    assert opened.model.evaluation == made.evaluation == read_evaluation(run).to_json()
    (run / LOG).write_text("{}")
    assert aadml.load(run).evaluation == made.evaluation  # the log of a closed form is empty, whatever is appended


def test_a_run_whose_data_changed_or_went_is_told(tmp_path):
    write_features(tmp_path / "own.h5", CONTENT)
    folder = aadml.fit(tmp_path / "own.h5", method="random", runs=tmp_path / "runs").folder
    write_features(tmp_path / "own.h5", replace(CONTENT, labels=np.roll(CONTENT.labels, 1)))
    with pytest.raises(InputError, match=f"the data changed since {folder} was trained; pass --data"):
        load_run(folder)
    (tmp_path / "own.h5").unlink()
    with pytest.raises(InputError, match=f"restore the data of {folder}, or pass --data"):
        load_run(folder)
    assert aadml.load(folder).facts.label == "random"


def test_what_is_no_run_says_what_it_is(made, tmp_path):
    saved = made.save(tmp_path / "model")
    (tmp_path / "empty").mkdir()
    for place, said in (
        (saved, "is a model without its run; pass --data"),
        (tmp_path / "nowhere", "no such folder; `aadml train` makes one"),
        (saved / "model.json", "is a file; a run is a folder"),
        (tmp_path / "empty", f"not a run folder .no {MANIFEST} in it."),
    ):
        with pytest.raises(InputError, match=said):
            load_run(place)
        assert not is_run(place)
        assert not is_finished(place)


def test_a_run_that_was_stopped_holds_no_model_and_no_evaluation(tmp_path):
    with new_run(tmp_path / "run") as store:
        store.commit({"config.yaml": b"c"})
    assert not is_finished(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "my run")
    for folder, written in (("run", f"{tmp_path}/run"), ("my run", f"'{tmp_path}/my run'")):
        wanted = f"was not trained to the end; continue it with `aadml train --resume {written}`"
        with pytest.raises(InputError, match=re.escape(wanted)):
            aadml.load(tmp_path / folder)
    with pytest.raises(InputError, match=r"evaluation\.json: no such file in this run; it was not trained to the end"):
        read_evaluation(tmp_path / "run")
    with pytest.raises(InputError, match=r"config\.yaml"):
        aadml.resume(tmp_path / "run")


def test_an_evaluation_that_the_manifest_does_not_name_finishes_no_run(run):
    manifest = read_manifest(run)
    files = {name: one for name, one in manifest.files.items() if name != "evaluation.json"}
    (run / MANIFEST).write_bytes(replace(manifest, files=files).to_bytes())
    assert not is_finished(run)
    assert aadml.load(run).evaluation is None


@pytest.mark.parametrize("name", ["model.json", "evaluation.json", "environment.json", "README.md"])
def test_verify_names_each_file_that_is_gone_or_was_changed(run, name):
    assert aadml.verify(run) == []
    (run / name).write_bytes((run / name).read_bytes() + b" ")
    (changed,) = aadml.verify(run)
    assert str(run / name) in changed
    assert changed.endswith("(a card may be edited)") == (name == "README.md")
    (run / name).unlink()
    (gone,) = aadml.verify(run)
    assert f"{run / name}: cannot be read (No such file or directory), but the run names it" in gone


def test_verify_says_which_file_a_folder_lacks_without_which_nothing_is_known(made, run, tmp_path):
    (run / MANIFEST).unlink()
    assert aadml.verify(run) == [f"{run / MANIFEST}: is missing; without it nothing of this run can be checked"]
    saved = made.save(tmp_path / "model")
    assert aadml.verify(saved) == []
    (saved / "model.json").unlink()
    assert aadml.verify(saved) == [f"{saved / 'model.json'}: is missing; without it the model cannot be loaded"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a run folder"):
        aadml.verify(tmp_path / "empty")


def test_a_file_that_was_changed_is_not_read(run):
    (run / "config.yaml").write_text("method: random\n")
    with pytest.raises(InputError, match=r"config\.yaml"):
        read_file(run, "config.yaml")
    manifest = replace(read_manifest(run), log=FileSum.of(b"a line\n"))
    (run / MANIFEST).write_bytes(manifest.to_bytes())
    (run / LOG).unlink(missing_ok=True)
    assert len(aadml.verify(run)) == 2
    assert any(f"{run / LOG}: cannot be read" in one for one in aadml.verify(run))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"features": {"audio": CONTENT.features["audio"]}},
            r"has no visual features, which the model needs; it has audio",
        ),
        (
            {"features": {"audio": CONTENT.features["visual"], "visual": CONTENT.features["visual"]}},
            "audio has 8 dimensions; the model was trained on 6",
        ),
    ],
)
def test_features_that_do_not_fit_a_model_are_refused(made, other, changes, message):
    with pytest.raises(InputError, match=message):
        read_for(made, other(**changes))


def test_classes_are_known_again_by_their_names(made, other):
    a, b, c = made.class_names
    for names in ((c, a, b), (c, a)):
        labels = np.minimum(CONTENT.labels, len(names) - 1)
        labels[0] = -1
        splits = read_for(made, other(labels=labels, class_names=names))
        for name in ("train", "valid", "test"):
            rows = CONTENT.rows(name)
            expected = [-1 if label < 0 else made.class_names.index(names[label]) for label in labels[rows]]
            assert splits[name].labels.tolist() == expected
            assert splits[name].class_names == made.class_names
    splits = read_for(made, other(class_names=(a, b, "unheard of")))
    assert splits.test.class_names == (a, b, "unheard of")
    assert splits.test.labels.tolist() == CONTENT.labels[CONTENT.rows("test")].tolist()


def test_of_clips_of_several_classes_each_is_known_again(made):
    _, b, c = made.class_names
    marked = np.random.default_rng(0).integers(0, 2, (51, 2)).astype(np.uint8)
    marked[:, 0] |= 1 - marked[:, 1]
    content = replace(CONTENT, labels=marked.argmax(1), class_names=(c, b), all_labels=marked)
    splits = model_data._divided(content, "there", made)
    assert splits.name == "there"
    for name in ("train", "valid", "test"):
        own = marked[CONTENT.rows(name)].astype(bool)
        assert np.array_equal(splits[name].all_labels.numpy()[:, 2], own[:, 0])
        assert np.array_equal(splits[name].all_labels.numpy()[:, 1], own[:, 1])
        assert not splits[name].all_labels[:, 0].any()


def test_a_split_without_clips_is_refused_with_what_there_is(made, other):
    splits = read_for(made, other(splits=tuple("train" if s == "valid" else s for s in CONTENT.splits)))
    assert len(nonempty_split(splits, "test")) == 12
    with pytest.raises(InputError, match=r"has no valid clips \(it has 39 train, 0 valid, 12 test\)"):
        nonempty_split(splits, "valid")


def test_captioned_sound_and_features_are_told_apart(made, monkeypatch):
    monkeypatch.setattr(model_data, "is_captioned", lambda path: True)
    with pytest.raises(InputError, match="is captioned sound; the model reads features of audio, visual"):
        read_for(made, "sound.csv")
    facts = replace(made.facts, method=replace(made.facts.method, arguments={"cleaning": "mei", "captions": 5}))
    reads = SimpleNamespace(facts=facts, modalities=("audio", "text"))
    monkeypatch.setattr(model_data, "read_captioned", lambda path, options: (path, options["captions"]))
    assert read_for(reads, "sound.csv") == ("sound.csv", 5)
    monkeypatch.setattr(model_data, "is_captioned", lambda path: False)
    with pytest.raises(InputError, match="is not captioned sound; pass a folder of captioned sound"):
        read_for(reads, "features.h5")


def test_evaluate_wants_one_thing_to_score_and_one_gallery(made, run, other):
    for given in ({}, {"model": made, "embeddings": "e.h5"}):
        with pytest.raises(InputError, match="pass either a model"):
            aadml.evaluate(**given)
    with pytest.raises(InputError, match="a model in memory needs data"):
        aadml.evaluate(made)
    with pytest.raises(InputError, match="exclude_partner and disjoint exclude each other"):
        aadml.evaluate(made, data=other(), exclude_partner=True, disjoint=True)
    whole = aadml.evaluate(made, data=other(), split="train")
    without = aadml.evaluate(made, data=other(), split="train", exclude_partner=True)
    halves = aadml.evaluate(made, data=other(), split="train", disjoint=True)
    assert len({one.map_mean for one in (whole, without, halves)}) == 3


def test_what_is_scored_otherwise_is_kept_under_a_name_of_its_own(made, run, tmp_path):
    aadml.evaluate(run)
    aadml.evaluate(run, similarity="euclidean", metrics="recall@3", queries=5, query_seed=7)
    aadml.evaluate(run, split="valid", relevance="own")
    evaluate_under_each(run, ["legacy:partner"], split="valid")
    for folder in (tmp_path / "one", tmp_path / "other"):  # judgments of one name in two places
        folder.mkdir()
        ids = load_run(run).splits.valid.ids
        (folder / "judged.txt").write_text("".join(f"{name} 0 {name} 1\n" for name in ids))
        aadml.evaluate(run, split="valid", relevance=folder / "judged.txt")
    kept = sorted(path.name for path in (run / "evaluations").iterdir())
    expected = [
        r"inductive-test-euclidean-recall-3-queries-5-seed-7-[0-9a-f]{8}\.json", r"inductive-test\.json",
        *[r"inductive-valid-relevance-[A-Za-z0-9._-]+-[0-9a-f]{8}\.json"] * 2, r"inductive-valid-relevance-own\.json",
        r"legacy-partner-valid-[0-9a-f]{8}\.json",
    ]  # fmt: skip
    assert len(kept) == len(expected)
    assert all(re.fullmatch(pattern, name) for pattern, name in zip(expected, kept, strict=True)), kept
    record = json.loads((run / "evaluations" / "inductive-test.json").read_text())
    assert (record["label"], record["seed"], record["split"]) == ("cca", 0, "test")
    assert record["map_mean"] == made.evaluation["map_mean"]
    assert Options().changed() == []
    assert Options(precision="float64", gallery="disjoint").changed() == ["float64", "disjoint"]


def test_scores_of_other_classes_have_no_label_space(other):
    settings = {"network.hidden": [4], "training.batch": 30}
    model = aadml.fit(other(), loss="triplet", epochs=1, settings=settings)
    assert aadml.evaluate(model, data=other()).label_space
    foreign = other(class_names=("x", "y", "z"))
    assert aadml.evaluate(model, data=foreign).label_space == {}


def test_an_audit_wants_one_subject(run, made):
    for given in ({}, {"run": run, "command": "mine"}, {"encoder": "a:b", "command": "mine"}):
        with pytest.raises(InputError, match="pass one of RUN"):
            aadml.audit(**given)
    for given in ({"command": "mine", "data": "f.h5"}, {"run": run, "data": "f.h5"}):
        with pytest.raises(InputError, match="--retrain applies to a run on its own data only"):
            aadml.audit(**given, retrain=True)


def test_an_encoder_is_a_function_or_the_name_of_one_beside_the_data(other, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(audit, "run_checks", lambda pipeline, *_, **__: asked.append(pipeline) or [])
    (tmp_path / "encoder_of_this_test.py").write_text("def same(features, labels):\n    return features\n")
    aadml.audit(encoder="encoder_of_this_test:same", data=other())
    assert asked[0].function({"audio": 1}, None) == {"audio": 1}
    with pytest.raises(InputError, match="--encoder same: not a name of a function; write it as module:function"):
        aadml.audit(encoder="same", data=other())


def test_what_training_again_answers_takes_the_place_of_what_was_not_checkable(run, monkeypatch):
    seen = [Finding("selection", verdict, "") for verdict in (Verdict.NOT_CHECKABLE, Verdict.PASS)]
    seen.append(Finding("partner", Verdict.NOT_CHECKABLE, ""))
    monkeypatch.setattr(audit, "run_checks", lambda *_, **__: list(seen))
    answer = Finding("fitted without test", Verdict.PASS, "")
    monkeypatch.setattr(audit, "fitted_without_test", lambda run, split: answer)
    plain = aadml.audit(run)
    assert plain[:3] == seen
    assert [one.check for one in plain[3:]] == ["kept epoch", "stored score"]
    assert aadml.audit(run, retrain=True) == [*seen[1:], *plain[3:], answer]


@pytest.mark.parametrize(
    ("options", "kept"), [({}, True), ({"split": "valid"}, False), ({"protocol": "legacy:partner"}, False)]
)
def test_only_the_audit_of_the_scored_clips_under_the_own_protocol_is_kept(run, monkeypatch, options, kept):
    findings = [Finding("partner", Verdict.FAIL, "seen")]
    monkeypatch.setattr(audit, "run_checks", lambda *_, **__: findings)
    found = aadml.audit(run, **options)
    assert (run / "audit.json").exists() == kept
    assert bool(aadml.load(run).audit) == kept
    if kept:
        content = json.loads((run / "audit.json").read_text())
        assert [one["check"] for one in content["findings"]] == [one.check for one in found]
        assert (content["protocol"], content["split"]) == ("inductive", "test")
        assert content["verdict"] == aadml.load(run).audit
        assert f"Audit: {content['verdict']}" in (run / "README.md").read_text()
    assert aadml.verify(run) == []


@pytest.mark.parametrize(
    ("apart", "passes"), [(0.0, True), (9e-4, True), (-9e-4, True), (1.1e-3, False), (-1.1e-3, False)]
)
def test_a_stored_score_is_that_of_the_model_within_a_thousandth(run, monkeypatch, apart, passes):
    opened, stored = load_run(run), read_evaluation(run)
    monkeypatch.setattr(audit, "read_evaluation", lambda folder: replace(stored, map_mean=stored.map_mean + apart))
    finding = audit._stored_score(opened)
    assert (finding.verdict is Verdict.PASS) == passes
    assert f"MAP {stored.map_mean + apart:.5f} in evaluation.json" in finding.evidence
    assert f"MAP of the model {stored.map_mean:.5f}" in finding.evidence


def test_embeddings_in_memory_are_scored_as_they_are(made):
    vectors = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    given = Clips.of(np.arange(20) % 2, audio=vectors.numpy(), visual=vectors.numpy()).embedded(
        {"audio": vectors, "visual": vectors}
    )
    found = aadml.evaluate(embeddings=given)
    assert (found.protocol, found.split) == ("unstated", "all")
    partner = aadml.evaluate(embeddings=given, relevance="own", split="test", protocol="mine")
    assert (partner.protocol, partner.split, partner.map_mean) == ("mine", "test", 1.0)
    assert found.map_mean < 1


def test_a_file_of_embeddings_without_splits_is_scored_whole_and_this_is_said(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((12, 4)).astype("f4")
    np.savez(tmp_path / "e.npz", audio=vectors, visual=vectors, label=np.arange(12) % 3)
    said = []
    found = aadml.evaluate(embeddings=tmp_path / "e.npz", split="test", on_note=said.append)
    assert found.split == "all"
    assert said == [f"{tmp_path / 'e.npz'}: has no 'split', so all its 12 clips are scored"]
    aadml.evaluate(embeddings=tmp_path / "e.npz", on_note=pytest.fail)
