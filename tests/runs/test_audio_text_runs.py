"""Audio-text from the command line, on a handful of short tones."""

import contextlib
import csv
import json
from functools import partial
from pathlib import Path

import h5py
import pytest
from click.testing import CliRunner

import aadml
from aadml.configuration.from_arguments import assemble, starting_file
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Callbacks
from aadml.runs.config_warnings import config_warnings
from aadml.runs.manifest import EVALUATION
from aadml.runs.sample_data import with_sample_data
from aadml.runs.store import open_run
from aadml.runs.train import train_into
from tests.sound_files import tone, write_wav

pytest.importorskip("transformers")

NARROW = {
    "audio-text": ["method.audio_width=2", "method.text_layers=1", "method.text_dimension=16", "method.hidden=16",
                   "method.dimension=16"],
    "3cmlf": ["method.audio_width=2", "method.text_layers=1", "method.text_dimension=16", "method.hidden=16",
              "method.dimension=16", "method.shares=[1, 1, 1]", "method.ancillary_epochs=1"],
    "xie": ["method.channels=8", "method.text_dimension=16"],
}  # fmt: skip


def call(*arguments):
    from aadml.cli import cli

    return CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.parametrize("method", NARROW)
def test_a_run_is_trained_evaluated_and_embeds_captioned_sound(manifest, tmp_path, method):
    settings = [part for key in (*NARROW[method], "training.batch=12") for part in ("--set", key)]
    config = {"audio-text": "audio_text", "3cmlf": "3cmlf", "xie": "xie"}[method]
    trained = call(
        "train", "--data", manifest, "--config", config, "--epochs", 3 if method == "3cmlf" else 1,
        "--runs", tmp_path, *settings,
    )  # fmt: skip
    assert trained.exit_code == 0, trained.output
    run = trained.stdout.splitlines()[-1]
    shown = [line for part in trained.stderr.split("\n") for line in part.split("\r") if line.strip()]
    assert all(line.lstrip("\x1b[A").startswith(("aadml: ", "training: ")) for line in shown), (
        "nothing but our own lines"
    )
    records = [json.loads(line) for line in (Path(run) / "metrics.jsonl").read_text().splitlines()]
    assert all(record["steps"] for record in records)
    assert f" of {len(records)} are kept" in shown[-1]
    found = json.loads(call("evaluate", run, "--json").stdout)
    assert {"text-audio", "audio-text"} == found["directions"].keys()
    side = found["directions"]["text-audio"]
    assert (side["queries"], side["gallery"]) == (12, 6)
    assert {"hit_rate_at", "recall_at", "map", "median_rank", "mean_rank"} <= side.keys()
    embedded = call("embed", run, manifest, "-o", tmp_path / "e.h5")
    assert embedded.exit_code == 0
    with h5py.File(tmp_path / "e.h5") as file:
        assert file["audio"].shape[0] == file["text"].shape[0] == 60
        assert len(set(file["label"][()].tolist())) == 30
    header, *rows = manifest.read_text().splitlines()
    only_test = manifest.parent / "test.csv"
    only_test.write_text("\n".join([header, *(row for row in rows if ",test," in row)]) + "\n")
    assert json.loads(call("evaluate", run, "--data", only_test, "--json").stdout)["directions"] == found["directions"]
    assert call("embed", run, only_test, "-o", tmp_path / "t.h5").exit_code == 0


@pytest.fixture(scope="module")
def narrow(manifest, tmp_path_factory):
    """A run of narrow networks on `manifest`."""
    settings = [*NARROW["audio-text"], "training.batch=12"]
    return aadml.fit(manifest, method="audio-text", epochs=1, settings=settings, runs=tmp_path_factory.mktemp("runs"))


def test_sounds_and_captions_of_other_data_that_are_left_out_are_reported(manifest, narrow, tmp_path):
    rows = list(csv.reader(manifest.read_text().splitlines()))
    rows[-1][-1], rows[-2][1] = "!?", "absent.wav"
    other = manifest.parent / "other.csv"
    with other.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    missing = "test: 1 of 6 clips have no usable sound: t28 (missing: the file does not exist)"
    expected = [missing, "test: captions without a word were left out: t29#2 ('!?')"]
    for command in (
        partial(aadml.evaluate, narrow, data=other),
        partial(aadml.embed, narrow, other, tmp_path / "e.h5"),
        partial(aadml.audit, narrow.folder, data=other),
    ):
        notes = []
        result = command(on_note=notes.append)
        assert notes[-2:] == expected
    (finding,) = (finding for finding in result if finding.check == "nothing dropped")
    assert finding.evidence == "; ".join(["9 embeddings of 9 clips", *expected])


def test_a_text_that_is_not_unicode_is_refused_in_one_line(manifest, narrow, tmp_path):
    message = r"^text: 'a \\ud[0-9a-f]{3}' contains characters that are not Unicode; pass valid text$"
    with pytest.raises(InputError, match=message):
        narrow.embed(text=["a tone", "a \ud800"])
    aadml.Index.build(manifest, tmp_path / "i", model=narrow.folder).close()
    with pytest.raises(InputError, match=message):
        call("search", tmp_path / "i", "--text", "a \udcff", "--to", "audio")


MIXES = ("bank", "bank-expansion", "legacy:label-graph", "legacy:batch-attention", "legacy:partner")


@pytest.mark.parametrize("protocol", MIXES)
def test_a_protocol_that_mixes_vectors_ranks_a_sound_once_for_all_its_captions(narrow, protocol):
    expected = aadml.evaluate(narrow.folder)
    found = aadml.evaluate(narrow.folder, protocol=protocol)
    assert [d.units for d in found.directions] == [d.units for d in expected.directions]
    assert [(len(d.ids), d.gallery) for d in found.directions] == [(6, 12), (12, 6)]


@pytest.mark.parametrize("protocol", MIXES[:-1])
def test_an_audit_embeds_each_modality_alone_under_protocols_that_mix_vectors(narrow, protocol):
    report = aadml.audit(narrow.folder, protocol=protocol)
    assert {f.check for f in report if not f.failed} >= {"one modality alone", "metric", "partner blindness"}
    assert report.failed == protocol.startswith("legacy:")


@pytest.mark.parametrize("finished", [False, True])
def test_a_run_is_not_continued_or_reused_after_its_word_vectors_were_replaced(manifest, tmp_path, finished):
    vectors, folder = tmp_path / "vectors.txt", tmp_path / "run"
    vectors.write_text(f"tone 1{' 0' * 15}\n")
    settings = [*NARROW["xie"], "training.batch=12", "training.epochs=1", f"method.text_weights={vectors}"]
    config = assemble(config="xie", data=str(manifest), settings=settings)

    def stop(record):
        raise InterruptedError

    with contextlib.nullcontext() if finished else pytest.raises(InterruptedError):
        train_into(config, folder, callbacks=Callbacks(on_epoch=None if finished else stop))
    vectors.write_text(f"tone 0 1{' 0' * 14}\n")
    message = r"the initial weights of text_weights/vectors\.txt have changed since .*; restore these weights, or start"
    with pytest.raises(InputError, match=message):
        train_into(config, folder)


def test_a_protocol_that_mixes_vectors_is_refused_for_sequences(manifest):
    model = aadml.fit(manifest, method="xie", epochs=1, settings=[*NARROW["xie"], "training.batch=12"])
    for protocol in MIXES[:2]:
        with pytest.raises(InputError, match=r"the embeddings of the model are sequences \(frame-word\)"):
            aadml.evaluate(model, data=manifest, protocol=protocol)


def test_each_method_starts_from_its_own_config_with_and_without_data_and_says_what_is_untrained(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    clips = tmp_path / "clips.csv"
    clips.write_text("")
    monkeypatch.setattr("aadml.runs.sample_data.sample_manifest", lambda say: clips)
    for method in NARROW:
        said = []
        config = with_sample_data(assemble(method=method, sample=True), said.append)
        assert config.method == method
        assert config.data == str(clips)
        assert any("sample clips" in message for message in said)
        (remark,) = config_warnings(config)
        assert "random weights" in remark
        assert starting_file(None, method, sample=True) == starting_file(None, method, sample=False)
    assert starting_file("mei_clotho", "audio-text", sample=True).values["method"] == "audio-text"


def test_a_method_of_vectors_refuses_captioned_sound(manifest, tmp_path):
    with pytest.raises(InputError, match="trains on features; extract features with"):
        call("train", "--data", manifest, "--method", "aadml", "--epochs", 1, "--runs", tmp_path)


def test_modalities_that_captioned_sound_does_not_have_are_refused(manifest):
    from aadml.runs.data import load_splits

    def loaded(names):
        return load_splits(assemble(config="xie", data=str(manifest), settings=[f"modalities={names}"]))

    assert loaded("[audio, text]").train.modalities == ("audio", "text")
    with pytest.raises(InputError, match="has no visual; choose from audio, text"):
        loaded("[audio, visual]")
    with pytest.raises(InputError, match=r"\[text\] does not name two modalities; choose at least two"):
        loaded("[text]")


@pytest.mark.slow
def test_reproduce_lays_out_the_tables_of_the_papers_and_goes_on_where_it_was_stopped(manifest, tmp_path):
    from aadml.cli import cli

    narrow = [part for key in (*NARROW["xie"], "training.batch=12") for part in ("--set", key)]
    arguments = ["reproduce", "xie", "--clotho", str(manifest), "--quick", "--max-epochs", "1",
                 "--seeds", "1", "--workers", "0", "-o", str(tmp_path), "--json", *narrow]  # fmt: skip
    first = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert first.exit_code == 0, first.output
    table = json.loads(first.stdout)
    assert [row["strategy"] for row in table["rows"]][2:4] == ["cross-modality hard", "cross-modality semi-hard"]
    assert all(0 <= row["T2A mAP"]["mean"] <= 1 for row in table["rows"])
    assert table["rows"][2]["published T2A mAP"] == "0.007"
    assert {path.suffix for path in tmp_path.glob("xie-clotho.*")} == {".md", ".csv", ".tex"}
    again = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert json.loads(again.stdout) == table
    assert "8 runs were finished earlier" in again.stderr
    assert "forecast" in first.stderr
    assert "forecast" not in again.stderr


def audiocaps(folder):
    """A folder in the layout of Mei et al.'s AudioCaps, with rendered tones."""
    for split, clips, captions in (("train", 12, 1), ("val", 4, 5), ("test", 4, 5)):
        names = ["caption"] if captions == 1 else [f"caption_{n}" for n in range(1, 6)]
        lines = [",".join(["file_name", *names])]
        (folder / "csv_files").mkdir(parents=True, exist_ok=True)
        for clip in range(clips):
            name = f"Y{split}{clip}.wav"
            lines.append(",".join([name, *(f"A tone number {clip} said {n} times" for n in range(captions))]))
            write_wav(folder / "waveforms" / split / name, tone(200 + 150 * clip))
        (folder / "csv_files" / f"{split}.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.slow
def test_mei_is_reproduced_quickly_from_a_folder_in_the_layout_of_audiocaps(tmp_path):
    from aadml.cli import cli

    narrow = [part for key in (*NARROW["audio-text"], "training.batch=6") for part in ("--set", key)]
    arguments = ["reproduce", "mei", "--audiocaps", str(audiocaps(tmp_path / "AudioCaps")), "--quick", "--seeds", "1",
                 "--max-epochs", "1", "--workers", "0", "-o", str(tmp_path / "out"), *narrow]  # fmt: skip
    told = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    with (tmp_path / "out" / "mei-audiocaps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert rows[7]["published T2A R@1"] == "33.9±0.4"
    assert all(0 <= float(row["T2A R@1"]) <= 100 for row in rows)
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("SHORTENED (--quick)") >= 2
    assert "narrow" in page
    assert told.stdout.strip().splitlines()[-1] == str(tmp_path / "out" / "report.html")


@pytest.mark.parametrize(
    ("arguments", "longest"), [(["--quick"], 3), (["--max-epochs", 4], 4), (["--max-epochs", 200], 50)]
)
def test_a_limit_of_epochs_shortens_every_row_and_the_model_that_makes_the_batches(
    tmp_path, monkeypatch, arguments, longest
):
    planned = []
    noted = lambda plan, jobs: planned.extend(jobs) or []  # noqa: E731
    monkeypatch.setattr("aadml.papers.reproduction_plan.ReproductionPlan.reproduce", noted)
    call("reproduce", "3cmlf", "--audiocaps", audiocaps(tmp_path / "AudioCaps"), "--seeds", 1,
         "--shard", "1/2", "-o", tmp_path / "out", "--set", "training.batch=2", *arguments)  # fmt: skip
    plain, *others = planned
    assert {job.config.training.epochs for job in planned} == {longest}
    assert {job.needs.folder for job in others if job.needs} == {plain.folder}, "the plain row makes the batches"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["mei", "--vegas", "v.h5"], "leave out --vegas"),
        (["paper", "--clotho", "c"], "leave out --clotho"),
        (["xie", "--clotho", "c", "--only", "table-1"], "the paper is not divided into parts"),
        (["xie", "--clotho", "absent"], "absent"),
    ],
)
def test_a_paper_of_other_data_is_refused(tmp_path, arguments, hint):
    with pytest.raises(InputError, match=hint):
        call("reproduce", *arguments, "-o", tmp_path / "out", "--workers", 0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["training.batch=37"], "batches of 37 cannot be built from 36 items"),
        (["training.batch=24"], "items are duplicates of each other, but there are only 1 batches"),
    ],
)
def test_batches_that_cannot_be_built_are_refused_before_the_model_that_makes_them_is_trained(
    manifest, tmp_path, settings, said
):
    complete = assemble(config="3cmlf", data=str(manifest), settings=[*NARROW["3cmlf"], *settings])
    with pytest.raises(InputError, match=said):
        train_into(complete, tmp_path / "run")
    assert not list(tmp_path.rglob("metrics.jsonl"))


@pytest.mark.parametrize("method", NARROW)
def test_every_step_of_every_epoch_is_reported(manifest, tmp_path, method):
    config = {"audio-text": "audio_text", "3cmlf": "3cmlf", "xie": "xie"}[method]
    complete = assemble(
        config=config, data=str(manifest), settings=[*NARROW[method], "training.batch=12", "training.epochs=3"]
    )
    seen = []
    callbacks = Callbacks(
        on_plan=lambda epochs, done: seen.append(("plan", epochs, done)),
        on_step=lambda number: seen.append(("step", number)),
        on_epoch=lambda record: seen.append("epoch"),
    )
    train_into(complete, tmp_path / "run", callbacks=callbacks)
    epoch = [("step", 1), ("step", 2), ("step", 3), "epoch"]
    before = [("plan", 1, 0), *epoch] if method == "3cmlf" else []
    assert seen == [*before, ("plan", 3, 0), *epoch * 3]


@pytest.mark.slow
def test_a_study_replaces_values_of_captions_that_an_earlier_version_stored(manifest, tmp_path):
    settings = [key for key in NARROW["audio-text"] if "hidden" not in key] + ["training.batch=12", "training.epochs=1"]
    options = {"over": {"method.hidden": [16]}, "config": "audio_text", "data": manifest, "seeds": 1, "workers": 0}
    options |= {"settings": settings, "output": tmp_path / "study"}
    aadml.ablate(**options)
    path = next((tmp_path / "study").rglob(EVALUATION))
    record = json.loads(path.read_text())
    names = [f"{name}#{n}" for name in record["per_unit"]["id"] for n in (1, 2)]
    with open_run(path.parent) as store:
        store.commit({EVALUATION: json.dumps(record | {"per_unit": {"id": names, "map": [0.5] * len(names)}}).encode()})
    aadml.ablate(**options)
    assert json.loads(path.read_text()) == record
