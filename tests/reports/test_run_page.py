"""The verdict and the map of the page of a run."""

import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import aadml
from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import to_bytes
from aadml.protocols.audit import AuditReport, Finding, Verdict
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.summary import RELEVANCE_IN_WORDS
from aadml.runs.loading import AUDIT
from aadml.runs.protocol_scores import add_to_run
from tests.reports.parsed_html import words

run_page = pytest.importorskip("aadml.reports.run_page")


def verdict(**intervals):
    directions = {name: SimpleNamespace(map_interval=one, chance=0.5) for name, one in intervals.items()}
    return run_page._verdict(SimpleNamespace(directions=directions))


@pytest.mark.parametrize(
    ("intervals", "words"),
    [
        ({"ab": (0.6, 0.7), "ba": (0.6, 0.7)}, "The scores are better than chance in every direction"),
        ({"ab": (0.6, 0.7), "ba": (0.4, 0.7)}, "better than chance in ab and not distinguishable from chance in ba, "),
        (
            {"ab": (0.6, 0.7), "ba": (0.4, 0.7), "ac": (0.4, 0.7), "ca": (0.3, 0.7)},
            "The scores are better than chance in ab and not distinguishable from chance in ba, ac and ca, by the",
        ),
        (
            {"ab": (0.4, 0.7), "ba": (0.3, 0.4), "ac": (0.6, 0.7)},
            "not distinguishable from chance in ab, worse than chance in ba and better than chance in ac, by the",
        ),
        ({"ab": (0.4, 0.7), "ba": (0.3, 0.6)}, "The scores are not distinguishable from chance in every direction"),
        ({"ab": (0.2, 0.4), "ba": (0.3, 0.4)}, "The scores are worse than chance in every direction"),
        ({"ab": (0.5, 0.7), "ba": (0.3, 0.5)}, "The scores are not distinguishable from chance in every direction"),
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


def embedded():
    """Embeddings of twelve clips of two classes, with ties."""
    rows = torch.eye(3)[[0, 0, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2]]
    vectors = {"audio": rows, "visual": rows.roll(1, 0) + torch.arange(12)[:, None] / 10}
    return Embeddings(vectors, torch.tensor([0] * 3 + [1] * 9), tuple("abcdefghijkl"), "dot", ("rain", "dog"))


def model(**training):
    """A model of stages with four epochs in all, which are more than those of the config."""
    facts = SimpleNamespace(selected_epoch=3, training=SimpleNamespace(epochs=1, **training))
    return SimpleNamespace(facts=facts, audit="", records=lambda: [{}] * 4)


VERDICT = (
    "The scores are better than chance in audio-visual and not distinguishable from chance in visual-audio, "
    "by the 95 % intervals over test sets."
)
SUMMARY = f"""{VERDICT}
test MAP, mean of both directions|0.833|1.2 times chance
chance|0.697|MAP of a random order
MAP audio-visual|0.860|95 % interval 0.730 to 0.989
MAP visual-audio|0.807|95 % interval 0.612 to 1.000
Warning|: It stopped early.
metric|audio-visual|visual-audio
MAP|0.860|0.807
MAP, worst order of ties|0.847|0.702
MAP, best order of ties|0.872|0.917
chance|0.697|0.697
queries|12|12
gallery|12|12
precision@1|0.917|0.833
precision@5|0.783|0.731
precision@10|0.717|0.642
Protocol inductive: every item is embedded independently, and every query ranks the whole gallery, including its own \
clip (MAP 0.829 without that clip). Items are compared by dot; ties count by exact expectation (tie rate 54.17%).
The weights are those of epoch 3 of 4, chosen on the validation clips, never on test.
The scores are those of one training run. Intervals are over test sets, not over seeds.
Audit for leaks: not audited; run aadml audit RUN.
A note on the data."""


def test_a_summary_in_full():
    evaluation = evaluate(embedded())
    html = run_page._summary(evaluation, model(select="best"), [], ["It stopped early"], ["A note on the data."])
    assert words(html) == SUMMARY.replace("|", "\n")
    without_log = SimpleNamespace(**vars(model(select="last")) | {"records": tuple})
    few = words(run_page._summary(evaluate(embedded(), queries=5), without_log, [], [], []))
    assert "The weights are those of epoch 3, the last epoch." in few
    assert "The queries are a random sample: 5 of 12 queries (seed 0) against the whole gallery." in few
    own = words(run_page._summary(replace(evaluation, relevance="own"), model(select="last"), [], [], []))
    assert f"A relevant result is {RELEVANCE_IN_WORDS['own']}." in own
    assert "A relevant result is" not in few
    three = replace(embedded(), vectors={**embedded().vectors, "text": torch.ones(12, 3)})
    assert "test MAP, mean of all directions" in words(
        run_page._summary(evaluate(three), model(select="last"), [], [], [])
    )


def test_classes_have_bars_of_each_direction_with_their_chance(monkeypatch):
    drawn = []
    monkeypatch.setattr(run_page.figures, "class_bars", lambda *given: drawn.append(given) or "<svg bars/>")
    monkeypatch.setattr(run_page, "_map", lambda embeddings: "<p>map</p>")

    def direction(name, maps):
        rows = [SimpleNamespace(name=label, map=value, chance=value / 2) for label, value in maps.items()]
        return SimpleNamespace(name=name, by_class=rows)

    directions = (direction("a-v", {"rain": 0.5, "dog": 0.25}), direction("v-a", {"dog": 1.0}))
    section = run_page._classes(SimpleNamespace(directions=directions), embedded())
    ((names, values, chance),) = drawn
    assert (names, chance) == (["rain", "dog"], [0.25, 0.125])
    assert values == {"a-v": [0.5, 0.25], "v-a": [pytest.approx(float("nan"), nan_ok=True), 1.0]}
    assert section.content == (
        '<div class="drawings"><div><figure class="drawing"><svg role="img" aria-label="MAP of the queries of each of '
        '2 classes" bars/><figcaption>MAP by class of the query.</figcaption></figure></div><div><p>map</p></div></div>'
    )
    assert run_page._classes(SimpleNamespace(directions=(direction("a-v", {}),)), embedded()).content == ""


def test_training_and_scope_have_a_figure_of_each_curve_or_are_left_out(monkeypatch):
    assert run_page._training([], SimpleNamespace(selected_epoch=2)).content == ""
    monkeypatch.setattr(run_page.figures, "training_curves", lambda records, selected: {f"loss {selected}": "<svg x/>"})
    section = run_page._training([{"epoch": 1}, {"epoch": 2}], SimpleNamespace(selected_epoch=2))
    assert 'aria-label="loss 2 over 2 epochs"' in section.content
    monkeypatch.setattr(run_page, "svg", lambda chart: f"<svg {chart}/>")
    for cutoffs, figures in (((10,), []), ((10, 20), ["precision", "recall"])):
        curves = SimpleNamespace(scope=SimpleNamespace(cutoffs=cutoffs))
        evaluation = SimpleNamespace(directions=[SimpleNamespace(curves=curves)], plot_scope=lambda name: f"of {name}")
        content = run_page._scope(evaluation).content
        assert (
            re.findall(r'label="([^"]*) among the first K results, one line per direction" of \1/', content) == figures
        )


def test_the_making_of_a_run_in_full():
    environment = SimpleNamespace(
        versions={"python": "3.11", "torch": "2.5", "matplotlib": None}, commit=None, device="cuda:0", threads=4,
        device_name="H100", data=SimpleNamespace(name="folder/f.h5", sha256="0123456789abcdef" * 4),
        clips={"train": 9, "test": 3},
    )  # fmt: skip
    section = run_page._provenance(SimpleNamespace(shown=SimpleNamespace(yaml=lambda: "seed: 0\n")), environment)
    assert words(section.content) == (
        "data\nfolder/f.h5 (SHA-256 0123456789abcdef...)\nclips\n9 train, 3 test\ncommit\nnot in a repository\ndevice\n"
        "cuda:0 (H100, 4 threads)\nversions\npython 3.11, torch 2.5\nconfig.yaml\nseed: 0"
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    pytest.importorskip("matplotlib")
    return aadml.fit("synthetic:ave", method="cca", runs=tmp_path_factory.mktemp("runs")).folder


def test_a_failed_audit_comes_first(run, tmp_path, monkeypatch):
    monkeypatch.setattr(run_page, "_map", lambda embeddings: "")
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
    (tmp_path / "notes.html").write_text("my notes")
    for options, message in (
        ({"allow_other_features": True}, "allow_other_features applies only to data other than those of the run"),
        ({"output": tmp_path / "notes.html"}, "notes.html"),
    ):
        with pytest.raises(InputError, match=message):
            aadml.report(copy, **options)


def test_a_report_on_other_data_has_their_name_and_the_card_of_the_model(run, tmp_path, monkeypatch):
    monkeypatch.setattr(run_page, "_map", lambda embeddings: "")
    path = aadml.report(run, data="synthetic:ave", queries=20, output=tmp_path / "page.html")
    titles = re.findall(r"<h2[^>]*>([^<]*)</h2>", path.read_text())
    assert titles == ["Scope", "Classes", "Queries and their results", "The model"]
    assert "Report of a model of synthetic:ave" in path.read_text()
    monkeypatch.setattr(run_page, "write_text", lambda *given: None)
    beside = aadml.report(run, data="synthetic:ave", queries=20)
    assert (beside.parent, beside.name.startswith("report-synthetic-ave-")) == (run, True)


def test_at_most_1500_points_are_mapped(monkeypatch):
    shown = {}
    monkeypatch.setattr(run_page, "_plane", lambda vectors: (vectors[:, :2], "caption"))
    monkeypatch.setattr(run_page.figures, "class_map", lambda points, labels, _: shown.update(points) or "<svg x/>")
    for count, mapped in ((700, 700), (800, 750)):
        vectors = dict.fromkeys(("audio", "visual"), torch.ones(count, 2))
        ids = tuple(map(str, range(count)))
        drawn = run_page._map(Embeddings(vectors, torch.zeros(count, dtype=torch.long), ids, class_names=("x",)))
        assert f"Map of {mapped} clips: color is the class, shape the modality" in drawn
        assert {len(places) for places in shown.values()} == {mapped}


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


@pytest.mark.parametrize(("count", "perplexity"), [(30, 6.0), (200, 30.0)])
def test_the_same_points_have_the_same_map_whose_perplexity_is_a_fifth_of_them_or_30(monkeypatch, count, perplexity):
    manifold = pytest.importorskip("sklearn.manifold")
    options = []

    def projection(*given, **more):
        options.append((given, more))
        return SimpleNamespace(fit_transform=lambda vectors: vectors[:, :2])

    monkeypatch.setattr(manifold, "TSNE", projection)
    run_page._plane(torch.zeros(count, 4).numpy())
    assert options == [((2,), {"perplexity": perplexity, "init": "pca", "random_state": 0, "max_iter": 500})]


@pytest.mark.parametrize(("name", "options"), [("report.html", {}), ("report-ave.html", {"data": "synthetic:ave"})])
def test_a_report_is_written_through_a_link_only_if_the_link_was_typed(run, tmp_path, name, options):
    copy, victim = shutil.copytree(run, tmp_path / "run"), tmp_path / "mine"
    link = copy / run_page.REPORT if not options else copy / f"report-{run_page.file_name('synthetic:ave')}.html"
    link.unlink(missing_ok=True)
    link.symlink_to(victim)
    with pytest.raises(InputError, match=r"report.*\.html is a symbolic link"):
        aadml.report(copy, queries=2, **options)
    assert not victim.exists()
    aadml.report(copy, queries=2, output=link, **options)
    assert victim.is_file()
