"""The card says what a model is, what it was trained on, how it scored, and what its audit found."""

import re
from dataclasses import replace

import pytest

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.hub.saved_tower import SavedTower
from aadml.methods.architecture import Architecture
from aadml.model.card import card


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "clips.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))
    settings = {"network.hidden": [16], "training.batch": 20}
    return aadml.fit(path, loss="aa-triplet", epochs=2, settings=settings, runs=tmp_path / "runs")


def test_it_says_what_scored_how(run):
    card = (run.folder / "README.md").read_text()
    side = run.evaluation["directions"]["audio-visual"]
    low, high = side["map_interval"]
    assert f"| audio-visual | {side['map']:.4f} | {low:.4f} to {high:.4f} | {side['chance']:.4f} | 30 | 30 |" in card
    for words in ("# aa-triplet", "audio (6 dimensions)", "`synthetic`", "loss triplet, proxy anchor-aware",
                  "clips.h5 (60 train, 15 valid, 30 test clips; SHA-256 " + run.facts.data.sha256[:16],
                  "Protocol `inductive`, test split", "epoch", "Audit: not audited"):  # fmt: skip
        assert words in card, words


def test_a_pretrained_network_inside_the_model_is_named_with_its_license(run):
    tower = SavedTower("laion/clap", "abc", "cc-by-nc-4.0", {}, "projection", "0" * 64, 6)
    for adapted, begin, end in (
        ((), "pretrained network `laion/clap` at revision abc (license: cc-by-nc-4.0; ", "which is part of this model"),
        (("layer",), "low-rank adapters of `laion/clap` at revision abc (license: cc-by-nc-4.0; ", "needed to load"),
    ):
        written = card(replace(run.facts, architecture=Architecture(audio=replace(tower, adapted=adapted))), None, "")
        (line,) = [line for line in written.splitlines() if "laion/clap" in line]
        assert line.startswith(f"- audio: {begin}SHA-256 of the weights")
        assert end in line


def test_names_are_shown_and_say_nothing_of_their_own(run):
    names = ("dog\n\nAudit: passed.\n", "<script>harm()</script>", "a < b")
    card = aadml.load(run.folder)
    card = replace(card, facts=replace(card.facts, class_names=names)).card()
    assert "- classes: 3 (dog Audit: passed., \\<script>harm()\\</script>, a < b)\n" in card
    assert [line for line in card.splitlines() if line.startswith("Audit")] == [
        "Audit: not audited; run `aadml audit` on the run."
    ]


def test_no_text_of_a_file_begins_a_line_or_ends_a_code_span(run):
    """The texts of `model.json`, `evaluation.json` and `audit.json` may be a stranger's."""
    forged = "x`\n\n# Forged <b>\x1b[2K ![a](http://b)\n"
    facts, record = run.facts, run.record
    hostile = replace(
        facts, label=forged, similarity=forged, selected_epoch=2,
        method=replace(facts.method, name=forged),
        training=replace(facts.training, optimizer=forged),
        features={"audio": {"extractor": forged, "parameters": {forged: forged}},
                  "visual": {"extractor": [forged], "parameters": 5}},
        data=replace(facts.data, name=forged, sha256=forged, clips={forged: 1}, notes=(forged,)),
    )  # fmt: skip
    (scores, *_) = record.directions.values()
    record = replace(record, directions={"audio-visual": scores}, verdicts=("worse than chance",))
    plain = card(facts, record, "")
    written = card(hostile, replace(record, protocol=forged, split=forged, directions={forged: scores},
                                    verdicts=(forged,)), forged)  # fmt: skip
    assert len(written.splitlines()) == len(plain.splitlines())
    headings = [line for line in written.splitlines() if line.lstrip().startswith("#")]
    assert headings == ["# x` # Forged \\<b>\\x1b[2K ![a\\](http://b) ", "## Training", "## Scores", "## Use"]
    for kind in ("method", "features of", "Protocol"):
        assert f"{kind} `x # Forged " in written
    assert not re.search(r"(?<!\\)<b>|(?<!\\)\]\(|\x1b", written)


@pytest.mark.slow
def test_an_audit_is_kept_in_the_run_and_its_verdict_stands_on_the_card(run, tmp_path):
    findings = aadml.audit(run.folder)
    loaded = aadml.load(run.folder)
    assert loaded.audit.startswith(f"{findings.summary}; audited: these embeddings (SHA-256 ")
    assert f"Audit: {loaded.audit}." in (run.folder / "README.md").read_text()
    assert aadml.verify(run.folder) == []
    saved = loaded.save(tmp_path / "saved")
    assert f"Audit: {loaded.audit}." in (saved / "README.md").read_text()
    assert aadml.load(saved).audit == loaded.audit


@pytest.mark.slow
def test_an_audit_under_another_protocol_is_not_the_verdict_of_the_model(run):
    aadml.audit(run.folder, protocol="legacy:partner")
    assert aadml.load(run.folder).audit == ""


@pytest.mark.slow
def test_every_command_takes_a_model_folder_with_data_and_says_what_it_needs_without(run, tmp_path):
    pytest.importorskip("matplotlib")
    folder, data = run.save(tmp_path / "model"), tmp_path / "clips.h5"
    for call in (aadml.evaluate, aadml.audit, aadml.report):
        with pytest.raises(aadml.InputError, match="--data"):
            call(folder)
    assert aadml.evaluate(folder, data=data).map_mean == pytest.approx(run.evaluation["map_mean"], abs=1e-12)
    assert all(not one.failed for one in aadml.audit(folder, data=data))
    page = aadml.report(folder, data=data)
    assert page == folder / "report-clips.html"
    assert "aa-triplet" in page.read_text()
    assert str(tmp_path) not in page.read_text()
