"""The verdict and the map of the page of a run."""

import re
import shutil
from types import SimpleNamespace

import pytest
import torch

import aadml
from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.json_values import to_bytes
from aadml.protocols.audit import AuditReport, Finding, Verdict
from aadml.runs.loading import AUDIT
from aadml.runs.protocol_scores import add_to_run

run_page = pytest.importorskip("aadml.reports.run_page")


def verdict(**intervals):
    directions = {name: SimpleNamespace(map_interval=one, chance=0.5) for name, one in intervals.items()}
    return run_page._verdict(SimpleNamespace(directions=directions))


@pytest.mark.parametrize(
    ("intervals", "words"),
    [
        ({"ab": (0.6, 0.7), "ba": (0.6, 0.7)}, "The scores are better than chance in every direction"),
        ({"ab": (0.6, 0.7), "ba": (0.4, 0.7)}, "not in the direction ba, whose 95 % interval includes chance"),
        (
            {"ab": (0.6, 0.7), "ba": (0.4, 0.7), "ac": (0.4, 0.7), "ca": (0.3, 0.7)},
            "not in the directions ba, ac and ca, whose 95 % intervals include chance",
        ),
        ({"ab": (0.4, 0.7), "ba": (0.3, 0.4)}, "The scores cannot be distinguished from chance"),
        ({"ab": (0.2, 0.4), "ba": (0.3, 0.4)}, "The scores are worse than chance in every direction"),
    ],
)
def test_the_verdict_follows_the_intervals(intervals, words):
    assert words in verdict(**intervals)


@pytest.mark.parametrize(
    ("method", "label", "data", "title"),
    [
        ("aadml", "ce", None, "clips.h5: aadml with loss ce"),
        ("eics", "eics-aa-triplet", None, "clips.h5: eics with loss aa-triplet"),
        ("cca", "cca", None, "clips.h5: cca"),
        ("cca", "cca", "folder/other.h5", "other.h5: cca"),
    ],
)
def test_a_report_is_titled_by_data_method_and_loss(method, label, data, title):
    facts = SimpleNamespace(
        label=label, method=SimpleNamespace(name=method), data=SimpleNamespace(name="clips.h5"), seed=0
    )
    assert run_page._title(facts, data) == title


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    pytest.importorskip("matplotlib")
    return aadml.fit("synthetic:ave", method="cca", runs=tmp_path_factory.mktemp("runs")).folder


def test_a_failed_audit_comes_first(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    html = aadml.report(copy, queries=20).read_text()
    verdict = re.search(r'<p class="verdict">([^<]*)</p>', html)[1]
    assert 'class="alarm"' not in html
    checks = [Finding("history", Verdict.PASS, "no change"), Finding("partner blindness", Verdict.FAIL, "changed by 1")]
    rows = [vars(check) for check in checks]
    content = {"protocol": "inductive", "split": "test", "verdict": AuditReport(checks).summary, "findings": rows}
    add_to_run(copy, {AUDIT: to_bytes(content)}, print)
    html = aadml.report(copy, queries=20).read_text()
    summed = html.partition("<main>")[2]
    assert summed.startswith('<div class="alarm"><p class="verdict">The audit failed: partner blindness.')
    assert "partner blindness: changed by 1." in summed
    assert f'<p class="note">{verdict}</p>' in summed
    assert f'<p class="verdict">{verdict}</p>' not in summed


def test_the_table_of_metrics_has_a_column_for_each_direction(run):
    html = aadml.report(run, queries=20).read_text()
    table = html.partition('aria-label="Scores of each direction"')[2].partition("</table>")[0]
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)', table)
    assert heads == ["metric", "audio-visual", "visual-audio"]
    rows = re.findall(r'<th scope="row"[^>]*>([^<]*)', table)
    assert rows[:3] == ["MAP", "MAP, worst order of ties", "MAP, best order of ties"]
    assert "precision@10" in rows


def test_a_clip_without_a_modality_has_no_point_of_that_modality(monkeypatch):
    pytest.importorskip("matplotlib")
    shown = {}
    monkeypatch.setattr(
        run_page.figures, "class_map", lambda points, labels, _: shown.update(p=points, l=labels) or "<svg "
    )
    vectors = {
        m: torch.randn(6, 4, generator=torch.Generator().manual_seed(n)) for n, m in enumerate(("audio", "text"))
    }
    lacking = torch.tensor([True, False, True, True, False, True])
    run_page._map(
        Embeddings(vectors, torch.arange(6) % 2, tuple("abcdef"), class_names=("x", "y"), present={"text": lacking})
    )
    assert {m: len(places) for m, places in shown["p"].items()} == {"audio": 6, "text": 4}
    assert shown["l"]["text"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(("similarity", "is_scaled"), [("cosine", True), ("dot", False), ("euclidean", False)])
def test_the_map_compares_directions_where_the_similarity_does(monkeypatch, similarity, is_scaled):
    pytest.importorskip("matplotlib")
    compared = []
    monkeypatch.setattr(run_page, "_plane", lambda vectors: compared.append(vectors) or (vectors[:, :2], "caption"))
    vectors = {m: torch.tensor([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]]) for m in ("audio", "text")}
    run_page._map(Embeddings(vectors, torch.tensor([0, 1, 1]), tuple("abc"), similarity, ("x", "y")))
    expected = [[0.6, 0.8], [0.0, 1.0], [0.0, 0.0]] if is_scaled else vectors["audio"].tolist()
    torch.testing.assert_close(torch.from_numpy(compared[0]), torch.tensor(2 * expected, dtype=torch.float64))


@pytest.mark.parametrize(("count", "method"), [(29, "principal components"), (30, "t-SNE")])
def test_few_points_are_mapped_by_their_principal_components(count, method):
    pytest.importorskip("sklearn")
    vectors = torch.randn(count, 4, generator=torch.Generator().manual_seed(0)).double().numpy()
    places, caption = run_page._plane(vectors)
    assert places.shape == (count, 2)
    assert method in caption
