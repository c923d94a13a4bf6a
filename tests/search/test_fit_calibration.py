"""Calibration of an index by validation clips of its own and of other files."""

import json
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.retrieval.exact_search import Gallery
from aadml.search import Index, encoders, fit_calibration, store
from aadml.search.calibration import Calibration, Curve
from aadml.search.facts import CalibrationRecord, StateRecord, read_facts, write_facts
from aadml.search.fit_calibration import IndexContent, ValidationClips, summary, why_uncalibrated
from aadml.search.store import connect, writing


@pytest.fixture(scope="module")
def easy(tmp_path_factory):
    path = tmp_path_factory.mktemp("easy") / "easy.h5"
    write_features(path, synthetic(classes=4, train=80, valid=60, test=60, dimensions=(6, 8), difficulty=0.5))
    return path


@pytest.fixture(scope="module")
def model(easy, tmp_path_factory):
    return aadml.fit(easy, method="cca", settings={"method.dimension": 4}, runs=tmp_path_factory.mktemp("runs"))


def test_curves_of_another_version_are_refused_and_fitted_anew(easy, model, tmp_path):
    Index.build(easy, tmp_path / "i", model=model).close()
    with closing(connect(tmp_path / "i")) as database:
        facts = read_facts(database, tmp_path / "i")
    assert (facts.calibration.form, facts.state) == (4, StateRecord(2, model.method.similarity))
    with writing(tmp_path / "i") as database:
        calibration = replace(facts.calibration, form=1, curves=[{"kind": "isotonic"}])
        write_facts(database, replace(facts, calibration=calibration))
    with pytest.raises(
        InputError, match="another version of aadml fitted the probabilities; run `aadml index SOURCE -o"
    ):
        Index(tmp_path / "i")
    with Index.build(easy, tmp_path / "i", model=model) as index:
        assert len(index._state.calibrations) == 6


@pytest.mark.parametrize(
    ("curve", "says"), [({"level": float("nan")}, "not JSON compliant"), ({"kind": "isotonic"}, "'isotonic'")]
)
def test_damaged_curves_are_refused(curve, says):
    calibration = asdict(Calibration(("audio",), "audio", Curve("logistic"), "class", 30, 9, 0.1, 0.1, 0.9))
    record = CalibrationRecord(3, curves=[json.loads(json.dumps(calibration))])
    assert fit_calibration.read_calibrations(record, Path("i")).keys() == {(("audio",), "audio")}
    with pytest.raises(DamagedFileError, match=f"^i.*damaged.*{says}"):
        fit_calibration.read_calibrations(replace(record, curves=[{**calibration, "curve": curve}]), Path("i"))


@pytest.mark.slow
def test_an_index_says_how_likely_its_hits_fit(easy, model, tmp_path):
    notes = []
    with Index.build(easy, tmp_path / "i", model=model, precision=0.6, on_note=notes.append) as index:
        assert [note.partition(":")[0] for note in notes] == [
            "audio to audio", "audio to visual", "visual to audio", "visual to visual", "audio+visual to audio",
            "audio+visual to visual",
        ]  # fmt: skip
        assert all("probabilities from 60 validation clips (calibration error 0." in note for note in notes)
        test = aadml.read(easy).test
        found = [index.search(audio=row.numpy(), to="visual") for row in test["audio"]]
        for one in found:
            chances = [hit.probability for hit in one.hits]
            assert chances == sorted(chances, reverse=True)
            threshold = one.calibration.threshold
            assert one.nothing_fits == (None if threshold is None else chances[0] < threshold)
        notes.clear()
        index.update(precision=0.6, on_note=notes.append)
        assert notes == []  # nothing has changed
        index.update(precision=0.5, on_note=notes.append)
        assert len(notes) == 6
        assert index.search(audio=test["audio"][0].numpy(), to="visual").calibration.precision == 0.5


@pytest.mark.slow
def test_without_validation_clips_there_are_no_probabilities_and_it_says_so(easy, model, tmp_path):
    content, notes = aadml.data.reading.open_data(easy), []
    bare = tmp_path / "bare.h5"
    write_features(bare, content.select(content.rows("test")))
    with Index.build(bare, tmp_path / "i", model=model, on_note=notes.append) as index:
        assert notes == [
            "the probabilities are not fitted: the index has 0 of the 30 validation clips that are needed; "
            "divide the clips with `aadml manifest --split` or, for features, `aadml convert --split`, or pass another "
            "file with --calibrate"
        ]
        found = index.search(audio=content.features["audio"][0], to="visual")
        assert found.calibration is found.nothing_fits is found.hits[0].probability is None
        assert found.uncalibrated == "the index has 0 of the 30 validation clips that are needed"
        index.update(calibrate=easy)
        assert index.search(audio=content.features["audio"][0], to="visual").hits[0].probability > 0
        write_features(bare, content.select(content.rows("test")[1:]))
        index.update()  # the clips of the calibration are remembered
        assert index.search(audio=content.features["audio"][0], to="visual").hits[0].probability > 0
    with pytest.raises(InputError, match="precision: 1 is not between 0 and 1"):
        Index.build(bare, tmp_path / "i", model=model, precision=1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (CalibrationRecord(), "the index is not calibrated; run `aadml index` to calibrate it"),
        (CalibrationRecord(clips=27), "the index has 27 of the 30 validation clips that are needed"),
        (CalibrationRecord(clips=30, data="other.h5"), "the validation clips of other.h5 cannot form such queries"),
    ],
)
def test_the_reason_for_no_probabilities_has_the_number_of_clips(content, words):
    assert why_uncalibrated(content) == words


def test_the_clips_of_a_calibration_are_found_from_elsewhere_and_known_by_their_content(tmp_path, monkeypatch):
    sizes = {"classes": 4, "test": 20, "dimensions": (6, 5), "difficulty": 0.3}
    clips, others = tmp_path / "clips.h5", tmp_path / "others.h5"
    write_features(clips, synthetic(train=40, valid=0, **sizes))
    write_features(others, synthetic(train=0, valid=40, **sizes))
    monkeypatch.chdir(tmp_path)
    with Index.build("clips.h5", "i", calibrate="others.h5") as index:
        assert {one.clips for one in index._state.calibrations.values()} == {40}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    write_features(clips, synthetic(train=44, valid=0, **sizes))
    with Index.build(clips, tmp_path / "i") as index:  # other items: fitted anew on the clips that are remembered
        assert {one.clips for one in index._state.calibrations.values()} == {40}
    write_features(others, synthetic(train=0, valid=50, **sizes))
    with Index.build(clips, tmp_path / "i") as index:
        assert {one.clips for one in index._state.calibrations.values()} == {50}
        generation = index._state.facts.state.generation
    with Index.build(clips, tmp_path / "i", calibrate=others) as index:  # the same file by another name: nothing to do
        assert index._state.facts.state.generation == generation


def test_curves_of_the_version_before_are_read_and_fitted_again(easy, tmp_path):
    Index.build(easy, tmp_path / "i").close()
    with writing(tmp_path / "i") as database:
        facts = read_facts(database, tmp_path / "i")
        write_facts(database, replace(facts, calibration=replace(facts.calibration, form=2)))
    notes = []
    with Index(tmp_path / "i") as index:
        assert len(index._state.calibrations) == 2
        index.update(on_note=notes.append)
        index.refresh()
        assert (len(notes), index._state.facts.calibration.form) == (2, 4)


def test_an_update_keeps_the_precision(tmp_path):
    def precisions(index):
        return {one.precision for one in index._state.calibrations.values()}

    sizes = {"classes": 4, "valid": 40, "test": 20, "dimensions": (6, 5), "difficulty": 0.3}
    write_features(tmp_path / "clips.h5", synthetic(train=0, **sizes))
    notes = []
    with Index.build(tmp_path / "clips.h5", tmp_path / "i", precision=0.5) as index:
        assert precisions(index) == {0.5}
        index.update(on_note=notes.append)
        assert notes == []
        write_features(tmp_path / "clips.h5", synthetic(train=4, **sizes))
        index.update()
        index.refresh()
        assert precisions(index) == {0.5}
        index.update(precision=0.6)
        index.refresh()
        assert precisions(index) == {0.6}
    with Index.build(tmp_path / "clips.h5", tmp_path / "j") as index:
        assert precisions(index) == {0.9}


def test_an_update_with_its_map_and_its_calibration_is_written_once_or_not_at_all(tmp_path, monkeypatch):
    def failed(*_):
        raise InputError("why")

    def written(**choices):
        paths.clear()
        index.update(**choices)
        return len(paths)

    source, paths, atomic_path = tmp_path / "clips.h5", [], store.atomic_path
    content = synthetic(classes=4, train=5, valid=40, test=20, dimensions=(6, 5), difficulty=0.3)
    write_features(source, content)
    monkeypatch.setattr(store, "atomic_path", lambda path: paths.append(path) or atomic_path(path))
    with Index.build(source, tmp_path / "i") as index:
        assert len(paths) == 1
        assert (written(), written(precision=0.6)) == (0, 1)
        write_features(source, content.select(np.arange(5, 65)))
        before = index.path.read_bytes()
        with monkeypatch.context() as failing:
            failing.setattr(fit_calibration, "_curves", failed)
            with pytest.raises(InputError, match="why"):
                index.update()
        assert index.path.read_bytes() == before
        assert (written(), written()) == (1, 0)
        assert (len(index.layout("audio").numbers), len(index._state.calibrations)) == (60, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clips.h5", "i"]


def content_of(dimensions):
    return synthetic(classes=4, train=5, valid=40, test=20, dimensions=dimensions, difficulty=0.3)


def two_files(tmp_path):
    """Write the clips of an index, and equal clips for its calibration."""
    files = tmp_path / "clips.h5", tmp_path / "other.h5"
    for path in files:
        write_features(path, content_of(dimensions=(6, 5)))
    return files


def test_an_update_without_the_file_of_the_last_calibration_uses_the_clips_of_the_index(tmp_path):
    (source, other), content, notes = two_files(tmp_path), content_of(dimensions=(6, 5)), []
    with Index.build(source, tmp_path / "i", calibrate=other) as index:
        before = index._state.facts.calibration
        assert before.data == "other.h5"
        other.unlink()
        index.update(on_note=notes.append)
        index.refresh()
        assert (index._state.facts.calibration, notes) == (before, [])
        write_features(source, content.select(np.arange(5, 65)))
        assert index.update(on_note=notes.append).removed == 5
        assert notes[0] == (
            f"{other} does not exist, so the validation clips of the index are used; pass another file with --calibrate"
        )
        index.refresh()
        assert (index._state.facts.calibration.data, len(index._state.calibrations)) == ("other.h5", 2)
        count = len(notes)
        index.update(on_note=notes.append, precision=before.precision)  # as a job that repeats its command
        assert notes[count:] == notes[:1]
        with pytest.raises(InputError, match=r"precision: .*other.h5 does not exist; pass another file"):
            index.update(precision=0.5)
        write_features(other, content)
        index.update()
        index.refresh()
        assert index._state.facts.calibration.content == before.content


def test_an_update_does_not_stop_at_a_changed_calibration_file_that_does_not_fit(tmp_path):
    (source, other), content, notes = two_files(tmp_path), content_of(dimensions=(6, 5)), []
    with Index.build(source, tmp_path / "i", calibrate=other) as index:
        before = index._state.facts.calibration
        write_features(other, content_of(dimensions=(7, 5)))
        index.update(on_note=notes.append)
        index.refresh()
        assert (index._state.facts.calibration, notes) == (before, [])
        write_features(source, content.select(np.arange(5, 65)))
        assert index.update(on_note=notes.append).removed == 5
        assert notes[0] == (
            f"{other} cannot be used for the probabilities ({other}: audio has 7 dimensions, but the index has 6; "
            "pass features of the extractor of the index, or build another index), so the validation clips of the "
            "index are used; pass another file with --calibrate"
        )
        index.refresh()
        assert (index._state.facts.calibration.data, len(index._state.calibrations)) == ("other.h5", 2)
        with pytest.raises(InputError, match=r"precision: .*other.h5 cannot be used .*; pass another file"):
            index.update(precision=0.5)
        write_features(other, content)
        index.update()
        index.refresh()
        assert index._state.facts.calibration.content == before.content


def test_an_index_with_few_clips_and_a_missing_file_is_not_calibrated_until_the_file_is_back(tmp_path):
    content = synthetic(classes=4, train=5, valid=40, test=20, dimensions=(6, 5), difficulty=0.3)
    source, other, notes = tmp_path / "clips.h5", tmp_path / "other.h5", []
    write_features(source, content)
    write_features(other, content)
    with Index.build(source, tmp_path / "i", calibrate=other) as index:
        other.unlink()
        write_features(source, content.select(np.arange(45, 65)))
        for count in (2, 3):
            index.update(on_note=notes.append)
            assert len(notes) == count
        found = index.nearest({"audio": torch.ones(1, 6)}, "audio")
        assert found.uncalibrated == "the index is not calibrated; run `aadml index` to calibrate it"
        write_features(other, content)
        index.update()
        assert index.nearest({"audio": torch.ones(1, 6)}, "audio").calibration is not None


@pytest.mark.parametrize("classes", [True, False])
def test_a_clip_is_not_a_hit_of_its_copy_in_another_file(model, tmp_path, classes):
    content = synthetic(classes=4, train=5, valid=40, test=20, dimensions=(6, 8), difficulty=0.5)
    if not classes:
        content = replace(content, labels=np.full(65, -1), class_names=())
    write_features(tmp_path / "clips.h5", content)
    write_features(tmp_path / "others.h5", replace(content, ids=tuple(f"other-{name}" for name in content.ids)))
    found = []
    for name in (None, "clips.h5", "others.h5"):
        data = None if name is None else tmp_path / name
        with Index.build(tmp_path / "clips.h5", tmp_path / "i", model=model, calibrate=data) as index:
            found.append(list(index._state.calibrations.values()))
        (tmp_path / "i").unlink()
    indexed, copies, others = found
    assert copies == (indexed if classes else others)  # clips without classes query each other
    assert others != indexed


@pytest.mark.parametrize("labels", ["ABCD", "abcd"])
def test_clips_without_a_relevant_item_fit_no_probabilities(tmp_path, labels):
    content = synthetic(classes=4, train=5, valid=40, test=20, dimensions=(6, 5), difficulty=0.3)
    unique = [f"{n}" for n in range(65)]
    write_features(tmp_path / "clips.h5", replace(content, class_names=tuple("abcd")))
    write_features(tmp_path / "others.h5", replace(content, class_names=tuple(labels)))
    alone = replace(content, labels=np.arange(65), class_names=tuple(unique))
    write_features(tmp_path / "alone.h5", alone)
    notes = []
    with Index.build(
        tmp_path / "clips.h5", tmp_path / "i", calibrate=tmp_path / "others.h5", on_note=notes.append
    ) as index:
        assert len(index._state.calibrations) == (2 if labels == "abcd" else 0)
    assert (notes == [NO_QUERIES.format(tmp_path / "others.h5")]) is (labels == "ABCD")
    Index.build(tmp_path / "alone.h5", tmp_path / "alone.index", on_note=notes.append).close()
    assert notes[-1] == NO_QUERIES.format("the index")


def test_calibration_clips_of_other_features_leave_no_index_behind(easy, model, tmp_path):
    other = tmp_path / "other.h5"
    write_features(other, synthetic(classes=4, train=80, valid=60, test=60, dimensions=(5, 7), difficulty=0.5))
    before = sorted(tmp_path.iterdir())
    for options, says in (({}, "audio has 5 dimensions, but the index has 6"), ({"model": model}, "5 dimensions")):
        with pytest.raises(InputError, match=says):
            aadml.index(easy, tmp_path / "new.index", calibrate=other, **options)
        assert sorted(tmp_path.iterdir()) == before


def test_vectors_that_are_not_a_mapping_of_tensors_are_an_input_error(easy, tmp_path):
    with Index.build(easy, tmp_path / "i") as index:
        for vectors in (None, [1], {"audio": [1.0]}, {"audio": torch.ones(6)}):
            with pytest.raises(
                InputError, match=r"vectors \(type .*\) does not map .*; pass \{modality: tensor \(1, e\)\}"
            ):
                index.nearest(vectors, "audio")
        with pytest.raises(InputError, match=r"vectors is empty; pass \{modality: tensor \(1, e\)\}"):
            index.nearest({}, "audio")
        for others in ({}, {"visual": torch.ones(1, 6)}):
            with pytest.raises(InputError, match="the query has 5 dimensions, but the items of the index have 6; pass"):
                index.nearest({"audio": torch.ones(1, 5), **others}, "audio")


def clips_of(vectors, labels, numbers):
    rows = dict.fromkeys(vectors, np.arange(len(labels)))
    return ValidationClips(labels, numbers, rows, lambda modality, rows: vectors[modality][rows])


@pytest.mark.parametrize("other", [True, False])
def test_clips_of_separate_modalities_fit_the_probabilities_of_each_modality(tmp_path, other):
    content = synthetic(classes=4, train=0, valid=70, test=0, dimensions=(6, 5), difficulty=0.3)
    has = {"audio": np.arange(70) < 40, "visual": np.arange(70) >= 40}
    features = {m: values * has[m][:, None] for m, values in content.features.items()}
    write_features(tmp_path / "clips.h5", replace(content, features=features, present=has))
    data = tmp_path / "clips.h5" if other else None
    with Index.build(tmp_path / "clips.h5", tmp_path / "i", calibrate=data) as index:
        assert [(one.asked, one.to, one.clips, one.gallery) for one in index._state.calibrations.values()] == [
            (("audio",), "audio", 40, 40), (("visual",), "visual", 30, 30)
        ]  # fmt: skip
        assert index._state.facts.calibration.clips == 40


def test_each_clip_of_another_file_is_embedded_once_in_each_modality(model, tmp_path, monkeypatch):
    content = synthetic(classes=4, train=0, valid=80, test=0, dimensions=(6, 8), difficulty=0.5)
    has = {"audio": np.arange(80) < 70, "visual": np.arange(80) >= 20}
    features = {m: values * has[m][:, None] for m, values in content.features.items()}
    write_features(tmp_path / "clips.h5", replace(content, ids=tuple(map(str, range(80)))))
    write_features(tmp_path / "others.h5", replace(content, features=features, present=has))
    embedded, embed = [], encoders.ModelEncoder.embed

    def counted(encoder, features, modality):
        embedded.append((modality, len(features)))
        return embed(encoder, features, modality)

    Index.build(tmp_path / "clips.h5", tmp_path / "i", model=model).close()
    monkeypatch.setattr(encoders.ModelEncoder, "embed", counted)
    with Index.build(tmp_path / "clips.h5", tmp_path / "i", calibrate=tmp_path / "others.h5") as index:
        counts = {kind: one.clips for kind, one in index._state.calibrations.items()}
    assert counts == {(m, to): n for m, n in (
        (("audio",), 70), (("visual",), 60), (("audio", "visual"), 50)
    ) for to in ("audio", "visual")}  # fmt: skip
    assert sorted(embedded) == [("audio", 70), ("visual", 60)]


NO_QUERIES = (
    "the probabilities are not fitted: the validation clips of {} cannot form queries with relevant items; "
    "pass a file of clips with classes with --calibrate"
)


@pytest.mark.parametrize("items", ["", "abc"])
def test_clips_without_a_class_query_each_other_if_they_are_not_in_the_index(items):
    index = drawn_index("cosine", items)
    vectors = torch.randn(40, 4)
    queries = clips_of({"audio": vectors, "visual": vectors}, ("",) * 40, np.full(40, -1))
    notes = []
    found = fit_calibration._curves(index, queries, 0.8, "there", notes.append)
    assert [(one.asked, one.to, one.relevance, one.gallery) for one in found] == [
        (("audio",), "visual", "pair", 40), (("visual",), "audio", "pair", 40)
    ]  # fmt: skip
    assert notes == [summary(one) for one in found]


@pytest.mark.parametrize("labelled", [True, False])
def test_labelled_clips_query_each_other_if_no_item_has_a_class(tmp_path, labelled):
    content = synthetic(classes=4, train=0, valid=40, test=20, dimensions=(6, 5), difficulty=0.3)
    bare = replace(content, labels=np.full(60, -1), class_names=())
    write_features(tmp_path / "bare.h5", bare)
    write_features(tmp_path / "others.h5", content if labelled else bare)
    notes = []
    with Index.build(
        tmp_path / "bare.h5", tmp_path / "i", calibrate=tmp_path / "others.h5", on_note=notes.append
    ) as index:
        found = index._state.calibrations
    assert notes == ([summary(one) for one in found.values()] or [NO_QUERIES.format(tmp_path / "others.h5")])
    assert {kind: (one.relevance, one.clips, one.gallery, one.to) for kind, one in found.items()} == (
        {((m,), m): ("class", 40, 40, m) for m in ("audio", "visual")} if labelled else {}
    )


@pytest.mark.parametrize(("items", "clips"), [(20_000, 1000), (40_000, 500), (100_001, 200)])
def test_many_validation_clips_are_sampled(monkeypatch, items, clips):
    drawn = []
    monkeypatch.setattr(fit_calibration, "_calibrated", lambda _, queries, *__, **___: drawn.append(queries.numbers))
    galleries = {"audio": (None, torch.empty(items, 0)), "visual": (None, torch.empty(9, 0))}
    index = IndexContent(galleries, {1: "a"}, SimpleNamespace(can_query=lambda m, to: m == to == "audio"))
    for count in (3000, clips):
        found = clips_of({"audio": torch.empty(count, 0)}, ("a",) * count, np.arange(count))
        fit_calibration._curves(index, found, 0.8, "there", print)
    assert len(np.unique(drawn[0])) == len(drawn[0]) == clips
    assert (np.diff(drawn[0]) > 0).all()
    assert drawn[1].tolist() == list(range(clips))


def drawn_index(similarity, labelled, items=60):
    """An index of clips in a mixed order, some without a class, one without a picture, with captions of the first."""
    generator = np.random.default_rng(0)
    order = generator.permutation(np.arange(1, items + 1))
    numbers = {"audio": order, "visual": order[order != 33], "text": np.arange(101, 121)}
    clips = {number: 1 + (number - 101) // 2 for number in range(101, 121)}
    labels = {n: labelled[n % 3] if labelled and n % 7 else "" for n in range(1, 121)}
    vectors = {m: torch.from_numpy(generator.normal(size=(len(n), 4)).astype("f4")) for m, n in numbers.items()}
    if similarity == "dot":
        vectors = {m: torch.softmax(v, 1) for m, v in vectors.items()}
    galleries = {m: (numbers[m], Gallery(v, similarity)) for m, v in vectors.items()}
    encoder = SimpleNamespace(can_query=lambda *_: True, similarity=similarity)
    return IndexContent(galleries, labels, encoder, clips)


def hits_by_definition(index, queries, modalities, to, *, classes):
    """Scores and relevance of the ten best items of each clip, and the best score among items of other classes."""
    numbers, gallery = index.galleries[to]
    numbers = np.array([index.clips.get(number, number) for number in numbers.tolist()])
    names = np.array([index.labels[number] for number in numbers.tolist()])
    scores = []
    for row, (label, number) in enumerate(zip(queries.labels, queries.numbers, strict=True)):
        if label or not classes:
            found = gallery.scores(torch.stack([queries.vectors[m][row] for m in modalities]))
            kept = (names != "") & (numbers != number) if classes else names == ""
            fits = numbers == number
            if classes:
                fits = np.array([not {*name.split("|")}.isdisjoint(label.split("|")) for name in names])
            order = [n for n in np.argsort(-found, kind="stable") if kept[n]][:10]
            others = found[(names != "") & ~fits].max() if classes else None
            scores.append((found[order], fits[order], others))
    return [np.stack(part) if part[0] is not None else None for part in zip(*scores, strict=True)]


@pytest.mark.parametrize(
    ("similarity", "labelled"),
    [("cosine", "abc"), ("cosine", ("a", "a|b", "c")), ("dot", "abc"), ("euclidean", ""), ("dot", "")],
)
def test_a_curve_is_fitted_to_the_best_items_of_each_clip(monkeypatch, similarity, labelled):
    fitted, notes = {}, []
    monkeypatch.setattr(fit_calibration, "calibrate", lambda m, to, hits, **o: fitted.update({(m, to): (hits, o)}))
    index = drawn_index(similarity, labelled)
    sounds = replace(index, galleries={m: index.galleries[m] for m in ("audio", "visual")})
    clips = fit_calibration._indexed_clips(sounds, np.arange(20, 61))
    assert clips.numbers.tolist() == [n for n in range(20, 61) if n % 7 or not labelled]
    assert fit_calibration._curves(index, clips, 0.8, "there", notes.append) == []
    assert notes == [NO_QUERIES.format("there")]
    kinds = [(m, to) for m in (("audio",), ("visual",), ("audio", "visual")) for to in index.galleries]
    pairs = [(("audio",), "visual"), (("visual",), "audio")]
    assert list(fitted) == (kinds if labelled else pairs)  # the captions are of other clips
    for (modalities, to), (hits, options) in fitted.items():
        queries = clips.queries(modalities if labelled else (*modalities, to), 41)
        partly = "visual" in (*modalities, *([] if labelled else [to]))
        assert queries.numbers.tolist() == [n for n in clips.numbers if n != 33 or not partly]
        for modality, vectors in queries.vectors.items():
            numbers, gallery = index.galleries[modality]
            assert torch.equal(vectors, gallery.vectors[[numbers.tolist().index(n) for n in queries.numbers]])
        scores, fits, absent = hits_by_definition(index, queries, modalities, to, classes=bool(labelled))
        np.testing.assert_allclose(hits.scores, scores, rtol=1e-6)
        assert np.array_equal(hits.fits, fits)
        np.testing.assert_equal(options.pop("absent"), absent)
        gallery = sum(index.labels[index.clips.get(n, n)] != "" for n in index.galleries[to][0].tolist())
        assert options == {
            "gallery": gallery if labelled else len(index.galleries[to][0]), "precision": 0.8,
            "posteriors": similarity == "dot" and bool(labelled), "relevance": "class" if labelled else "pair",
        }  # fmt: skip
    few = fit_calibration._indexed_clips(sounds, clips.numbers[:29])
    assert fit_calibration._curves(index, few, 0.8, "there", notes.append) == []
    kind = "with a class " if labelled else ""
    assert notes[1].startswith(
        f"the probabilities are not fitted: there has 29 of the 30 validation clips {kind}that are needed; "
    )


def test_clips_without_a_class_do_not_count_among_clips_with_a_class(monkeypatch):
    monkeypatch.setattr(fit_calibration, "calibrate", pytest.fail)
    index, notes = drawn_index("cosine", "abc"), []
    clips = fit_calibration._indexed_clips(index, np.arange(1, 11))
    assert clips.numbers.tolist() == [1, 2, 3, 4, 5, 6, 8, 9, 10]
    clips = fit_calibration._indexed_clips(
        replace(index, galleries={"audio": index.galleries["audio"]}), np.arange(27, 61)
    )
    assert fit_calibration._curves(index, clips, 0.8, "there", notes.append) == []
    assert "there has 29 of the 30 validation clips with a class that are needed" in notes[0]


def test_a_clip_of_many_captions_leaves_fewer_hits_to_every_clip(monkeypatch):
    found = []
    monkeypatch.setattr(fit_calibration, "calibrate", lambda m, to, hits, **_: found.append(hits.scores.shape[1]))
    index = drawn_index("cosine", "aaa")
    texts = (np.arange(101, 113), Gallery(torch.randn(12, 4), "cosine"))
    labels = dict.fromkeys(range(1, 121), "a")
    queries = clips_of({"text": torch.randn(30, 4)}, ("a",) * 30, np.arange(1, 31))
    for captions, hits in ((6, [6]), (12, [])):
        clips = {n: 1 if n <= 100 + captions else n - 100 for n in range(101, 113)}
        fit_calibration._curves(IndexContent({"text": texts}, labels, index.encoder, clips), queries, 0.8, "i", print)
        assert found == hits
        found.clear()


@pytest.mark.parametrize(("items", "hits"), [(1, None), (2, 1), (6, 5), (10, 8)])
def test_a_small_index_has_fewer_hits_than_are_fitted(monkeypatch, items, hits):
    found = []
    monkeypatch.setattr(fit_calibration, "calibrate", lambda m, to, hits, **_: found.append(hits.scores.shape[1]))
    index = drawn_index("cosine", "abc", items)
    index = replace(index, galleries={"audio": index.galleries["audio"]})
    queries = clips_of({"audio": torch.randn(30, 4)}, tuple("abc") * 10, np.full(30, -1))
    fit_calibration._curves(index, queries, 0.8, "there", print)
    assert found == ([] if hits is None else [hits])


@pytest.mark.parametrize(
    ("threshold", "says"),
    [
        (0.75, "above 0.75, 90% of the best hits are relevant"),
        (None, "there is no threshold, because a precision of 0.8 is not reached"),
    ],
)
def test_a_calibration_is_summed_up_in_a_line(threshold, says):
    reached = None if threshold is None else (0.9, 0.8, 1.0)
    one = Calibration(
        ("audio", "visual"), "text", Curve("logistic"), "pair", 40, 100, 0.0314, 0.1, 0.8, threshold, reached
    )
    assert summary(one) == (
        f"audio+visual to text: probabilities from 40 validation clips (calibration error 0.031); {says}"
    )
