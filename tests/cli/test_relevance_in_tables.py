"""What is relevant, and what chance has of each column, stand where figures are tabulated."""

from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.feature_file.writing import write_features


@pytest.fixture
def unlabelled(tmp_path):
    content = synthetic(classes=1, train=40, valid=15, test=20, dimensions=(24, 30), shared=0.8)
    content = replace(content, labels=np.full(75, UNLABELLED), class_names=())
    write_features(tmp_path / "pairs.h5", content)
    return tmp_path / "pairs.h5"


@pytest.mark.slow
def test_ablations_comparisons_and_pages_name_what_is_relevant(aadml, unlabelled, tmp_path):
    own = "relevance own (the query's own partner only), protocol inductive, "
    own += "chance 0.180 (recall@5 0.250, mean-rank 10.500)"
    rest = ["--data", unlabelled, "--seeds", 1, "--workers", 0, "--metric", "recall@5", "--metric", "mean-rank"]
    small = ["--set", "network.hidden=[8]", "--set", "training.criterion=map", "--max-epochs", 1]
    over = ["--over", "loss.temperature=0.1,0.2", "--baseline", "none", "-o", tmp_path / "a"]
    code, out, err = aadml("ablate", "--config", "pairs", *rest, *small, *over)
    assert (code, own in out) == (0, True), out + err
    assert own in unescape((tmp_path / "a" / "report.html").read_text())
    code, out, err = aadml("compare", "--methods", "cca", *rest, "-o", tmp_path / "c")
    assert (code, own in out) == (0, True), out + err
    run = next((tmp_path / "a" / "runs").iterdir())
    code, out, err = aadml("report", run)
    assert code == 0, err
    assert "A relevant result is the query's own partner only." in unescape((run / "report.html").read_text())


@pytest.mark.slow
def test_where_the_class_makes_relevant_nothing_is_added(aadml, features, tmp_path):
    over = ["--over", "loss.temperature=0.1", "--baseline", "none", "-o", tmp_path / "a", "--seeds", 1, "--workers", 0]
    small = ["--set", "network.hidden=[8]", "--set", "training.criterion=map", "--max-epochs", 1]
    code, out, err = aadml("ablate", "--config", "pairs", "--data", features, *over, *small)
    assert (code, "relevance" in out, "protocol inductive, chance 0." in out) == (0, False, True), out + err
