"""Intervals that resample clusters of test clips: a key of the config, and an option of the evaluation."""

import json
from dataclasses import replace

import pytest

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.manifest import EVALUATION
from aadml.runs.store import open_run
from tests.reports.parsed_html import words


def trained(file, runs, **options):
    """Train a small CCA, and return the folder of its run."""
    folders = []
    settings = {"method.dimension": 3, **options.pop("settings", {})}
    aadml.fit(file, method="cca", runs=runs, settings=settings, on_run=folders.append, **options)
    return folders[0]


@pytest.fixture
def file(tmp_path):
    content = synthetic(classes=3, train=60, valid=12, test=48, dimensions=(4, 5))
    speakers = tuple(f"s{number % 16}" for number in range(len(content.ids)))
    rooms = tuple("ab"[number % 2] for number in range(len(content.ids)))
    path = tmp_path / "f.h5"
    write_features(path, replace(content, columns={"speaker": speakers, "room": rooms, "empty": ("",) * len(speakers)}))
    return path


def test_a_run_and_an_evaluation_resample_the_same_clusters(file, tmp_path):
    run = trained(file, tmp_path / "runs", settings={"cluster": "speaker"})
    stored = json.loads((run / EVALUATION).read_text())
    plain = trained(file, tmp_path / "plain")
    notes = []
    clustered = aadml.evaluate(plain, cluster="speaker", on_note=notes.append)
    assert notes == []
    assert stored["map_mean_interval"] == pytest.approx(list(clustered.map_interval))
    assert clustered.directions[0].units == tuple(sorted(f"s{number}" for number in range(16)))
    assert "95 % interval over 16 clusters" in clustered.table()
    clips = aadml.evaluate(plain)
    assert clips.map == clustered.map
    assert clips.map_interval != clustered.map_interval
    assert len(clips.unit_values) == 48
    assert clips["audio-visual"].map_interval != clips.map_interval
    assert (plain / "evaluations" / "inductive-test-cluster-speaker.json").is_file()


def test_the_page_of_a_run_has_the_intervals_of_its_evaluation(file, tmp_path):
    pytest.importorskip("matplotlib")
    run = trained(file, tmp_path / "runs", settings={"cluster": "speaker"})
    page = words(aadml.report(run).read_text())
    for direction in aadml.evaluate(run).directions:
        assert "95 % interval {:.3f} to {:.3f}".format(*direction.map_interval) in page
    assert "Intervals are over 16 clusters, not over seeds." in page


def test_few_clusters_are_noted(file, tmp_path):
    notes, few = [], "the test clips form only 2 groups by room: intervals over so few groups are rough"
    run = trained(file, tmp_path / "runs", settings={"cluster": "room"}, on_note=notes.append)
    assert few in notes
    again = []
    aadml.evaluate(run, cluster="room", on_note=again.append)
    assert again == [few]


@pytest.mark.parametrize(
    ("column", "error"),
    [
        ("person", "has no column 'person'; choose from its columns: empty, room, speaker"),
        (
            "empty",
            r"48 test clips of .* have no value in the column of clusters \(the first is .*\); fill the column",
        ),
    ],
)
def test_a_column_that_is_missing_or_empty_is_an_error(file, tmp_path, column, error):
    with pytest.raises(InputError, match=error):
        trained(file, None, settings={"cluster": column})
    run = trained(file, tmp_path / "runs")
    with pytest.raises(InputError, match=error):
        aadml.evaluate(run, cluster=column)


def test_only_the_scored_clips_need_clusters(tmp_path):
    content = synthetic(classes=3, train=30, valid=12, test=18, dimensions=(4, 5))
    for split, scored in (("valid", "test"), ("test", "valid")):
        speakers = tuple("" if own == split else own for own in content.splits)
        write_features(tmp_path / "f.h5", replace(content, columns={"speaker": speakers}))
        run = trained(tmp_path / "f.h5", tmp_path / "runs")
        assert aadml.evaluate(run, split=scored, cluster="speaker").directions[0].units == (scored,)
        with pytest.raises(InputError, match=f"{split} clips of .* have no value in the column of clusters"):
            aadml.evaluate(run, split=split, cluster="speaker")
    write_features(tmp_path / "f.h5", replace(content, columns={"speaker": (*content.splits[:-1], "")}))
    with pytest.raises(InputError, match=r"1 test clips of .* have no value"):
        trained(tmp_path / "f.h5", tmp_path / "runs", settings={"cluster": "speaker"})


def test_a_run_with_clusters_is_scored_on_a_split_without_them(tmp_path):
    content = synthetic(classes=3, train=30, valid=12, test=18, dimensions=(4, 5))
    speakers = tuple(f"s{n}" if own == "test" else "" for n, own in enumerate(content.splits))
    write_features(tmp_path / "f.h5", replace(content, columns={"speaker": speakers}))
    run, notes = trained(tmp_path / "f.h5", tmp_path / "runs", settings={"cluster": "speaker"}), []
    scores = aadml.evaluate(run, split="valid", on_note=notes.append)
    assert notes == ["12 valid clips have no value in the column of clusters, so intervals resample single clips"]
    assert not scores.clustered
    assert len(scores.directions[0].units) == 12
    assert aadml.evaluate(run).clustered


def test_data_without_columns_are_an_error(file):
    splits = aadml.read(file)
    with pytest.raises(InputError, match=r"cluster is speaker, but the data in memory .* have no columns"):
        aadml.fit(splits, method="cca", settings={"cluster": "speaker"})
    with pytest.raises(InputError, match="cluster 'speaker' is a column of data, but embeddings are scored"):
        aadml.evaluate(embeddings=splits.test, cluster="speaker")


def test_values_are_added_to_an_evaluation_of_an_earlier_version(file, tmp_path):
    options = {"data": file, "methods": ["random"], "losses": (), "seeds": 1, "output": tmp_path / "study"}
    aadml.compare(**options)
    path = next((tmp_path / "study").rglob(EVALUATION))
    record = json.loads(path.read_text())
    earlier = {key: value for key, value in record.items() if key not in ("per_unit", "map_mean_interval")}
    with open_run(path.parent) as store:
        store.commit({EVALUATION: json.dumps(earlier).encode()})
    aadml.compare(**options)
    assert json.loads(path.read_text()) == record
