"""A clip without a label among labeled ones: from the file to the evaluation, by the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError

SMALL = ["--set", "network.hidden=[8]", "--epochs", "2"]


def called(*words):
    answer = CliRunner().invoke(cli, list(map(str, words)))
    if answer.exception and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    return answer


@pytest.fixture
def partly(tmp_path):
    """Forty training clips, every second of them without a label; one of each split else."""
    content = synthetic(classes=3, train=40, valid=15, test=30, dimensions=(6, 8), difficulty=0.2)
    labels = content.labels.copy()
    labels[content.rows("train")[::2]] = UNLABELLED
    labels[content.rows("valid")[:1]] = labels[content.rows("test")[:1]] = UNLABELLED
    write_features(tmp_path / "F.h5", replace(content, labels=labels))
    return tmp_path / "F.h5"


def run_of(answer, tmp_path):
    return tmp_path / "runs" / answer.stdout.strip().splitlines()[-1].rsplit("/", 1)[-1]


def test_the_data_choose_few_labels_and_queries_without_a_label_are_left_out(partly, tmp_path):
    trained = called("train", "--data", partly, "--runs", tmp_path / "runs", *SMALL)
    assert "some clips have no label, so config 'few_labels' is used" in trained.stderr
    run = run_of(trained, tmp_path)
    scored = json.loads((run / "evaluation.json").read_text())
    assert scored["directions"]["audio-visual"]["queries"] == 29
    assert called("embed", run, partly, "-o", tmp_path / "E.h5").exit_code == 0
    again = json.loads(called("evaluate", "--embeddings", tmp_path / "E.h5", "--json").stdout)
    assert again["map_mean"] == pytest.approx(scored["map_mean"])
    later = json.loads(called("evaluate", run, "--data", partly, "--json").stdout)
    assert later["map_mean"] == pytest.approx(scored["map_mean"])


def test_a_method_that_needs_all_labels_refuses_or_trains_without_the_others(partly, tmp_path):
    with pytest.raises(InputError, match="21 training or validation clips have no label"):
        called("train", "--data", partly, "--runs", tmp_path / "runs", "--method", "aadml")
    trained = called(
        "train", "--data", partly, "--runs", tmp_path / "runs", "--method", "aadml", *SMALL,
        "--set", "unlabelled=drop",
    )  # fmt: skip
    assert "20 train clips without a label are left out" in trained.stderr
    assert called("train", "--data", partly, "--runs", tmp_path / "runs", "--method", "pairs", *SMALL).exit_code == 0


def test_files_keep_who_has_no_label(partly, tmp_path):
    whole = read_features(partly)
    divided = tmp_path / "D.h5"
    called("convert", partly, divided, "--split", "random:0.6/0.2/0.2")
    assert np.array_equal(read_features(divided).labels, whole.labels)
    assert "22 clips have no label" in called("inspect", partly).stdout + called("inspect", partly).stderr
    wrong = replace(whole, labels=np.where(whole.labels == UNLABELLED, -2, whole.labels))
    with pytest.raises(InputError, match="/label is -2 in row"):
        write_features(tmp_path / "W.h5", wrong)
    marked = np.zeros((len(whole.ids), 3), dtype=np.uint8)
    marked[whole.labels >= 0, whole.labels[whole.labels >= 0]] = 1
    write_features(tmp_path / "S.h5", replace(whole, all_labels=marked))
    first = tmp_path / "first.h5"
    called("convert", tmp_path / "S.h5", first, "--first-label")
    assert np.array_equal(read_features(first).labels, whole.labels)
    marked[whole.labels < 0, 0] = 1
    with pytest.raises(InputError, match="/labels and /label contradict each other"):
        write_features(tmp_path / "X.h5", replace(whole, all_labels=marked))
