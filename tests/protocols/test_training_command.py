"""A training command sees the training clips alone, and what it could have seen besides is reported."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import training_command
from aadml.protocols.audit import AuditReport, Finding, Verdict
from aadml.protocols.subprocess_embedding import Results
from aadml.runs import audit

TRAIN = """
import sys, h5py, numpy as np
from pathlib import Path
with h5py.File(sys.argv[1]) as file:
    print(sorted(set(file["split"].asstr()[...])))
    count, rows = len(file["id"]), {m: file[m][...] for m in ("audio", "visual")}
{extra}
weights = {m: v[:, :3].mean(0) + count for m, v in rows.items()}
np.savez(Path(sys.argv[2], "weights.npz"), **weights)
Path(sys.argv[2], "note").touch()
"""
ENCODER = """
import numpy as np
def encode(features, labels):
    weights = np.load("trained/weights.npz")
    return {m: v[:, :3] * weights[m] for m, v in features.items()}
"""


@pytest.fixture
def audited(tmp_path, monkeypatch):
    """Audit an encoder that a script with the line `extra` trains, without checks."""
    data, script, encoder = tmp_path / "data" / "f.h5", tmp_path / "train.py", tmp_path / "data" / "own_encoder.py"
    data.parent.mkdir()
    write_features(data, synthetic(classes=2, train=30, valid=4, test=10, dimensions=(4, 5)))
    encoder.write_text(ENCODER)
    monkeypatch.setattr(audit, "CHECKS", [])

    def run(extra="", **options):
        script.write_text(TRAIN.replace("{extra}", extra))
        line = f"{sys.executable} {script} {{train}} {{output}}"
        return aadml.audit(data=data, encoder="own_encoder:encode", train_command=line, **options), data

    return run


def of_training(report):
    return next(finding for finding in report if finding.check == "trained without test")


def test_an_encoder_that_is_trained_on_the_export_has_passed(audited):
    notes = []
    report, _ = audited(on_note=notes.append)
    assert notes == ["the encoder is trained twice"]
    finding = of_training(report)
    assert (report.training, report.inference, finding.verdict) == ("passed", "passed", Verdict.PASS)
    assert "on an export of 30 training clips" in finding.evidence
    assert finding.evidence.endswith("the files of both runs are equal")


@pytest.mark.slow
def test_a_random_training_passes_and_is_called_random(audited):
    report, _ = audited("count += np.random.default_rng().random()")
    assert report.training == "passed"
    assert of_training(report).evidence.endswith("are different (the training is random)")


def test_a_training_that_opens_the_data_is_refused_or_unknown(audited, tmp_path):
    place = tmp_path / "data" / "f.h5"
    with pytest.raises(InputError, match=r"exit status 1 .*Permission denied"):
        audited(f"open({str(place)!r}, 'rb').read()")
    with pytest.raises(InputError, match="contains the data with the labels"):
        audited(allow=[place])


def test_a_training_that_writes_nothing_or_has_no_clips_is_refused_with_advice(audited):
    with pytest.raises(InputError, match=r"wrote no file into the folder \{output\}"):
        audited("sys.exit()")
    with pytest.raises(InputError, match="not scored, but the train split is scored; pass --split test"):
        audited(split="train")
    with pytest.raises(InputError, match=r"--train-command 'x' lacks \{train\} or \{output\}"):
        aadml.audit(data="synthetic:ave", encoder="a:b", train_command="x")
    with pytest.raises(InputError, match="--train-command applies only to --encoder and --command"):
        aadml.audit("run", train_command="x")


def test_the_export_is_the_training_clips_alone(tmp_path):
    from aadml.data.reading import open_data
    from aadml.protocols.pipelines import exported

    splits = to_splits(synthetic(classes=2, train=30, valid=4, test=10, dimensions=(4, 5)))
    (tmp_path / "train.h5").write_bytes(exported(splits.train, "train").tobytes())
    content = open_data(tmp_path / "train.h5")
    assert (set(content.splits), content.ids) == ({"train"}, splits.train.ids)
    assert np.array_equal(content.features["audio"], splits.train.matrix("audio").numpy())
    lacking = {"audio": torch.arange(len(splits.train)) % 3 > 0}
    marks = torch.rand(len(splits.train), 2) > 0.5
    marks[torch.arange(len(marks)), splits.train.labels] = True
    clips = replace(splits.train, present=lacking, all_labels=marks)
    (tmp_path / "train.h5").write_bytes(exported(clips, "train").tobytes())
    content = open_data(tmp_path / "train.h5")
    assert np.array_equal(content.present["audio"], lacking["audio"].numpy())
    assert np.array_equal(content.all_labels, marks.numpy())
    others = replace(clips, present=dict.fromkeys(clips.modalities, lacking["audio"]), all_labels=~marks)
    (tmp_path / "train.h5").write_bytes(exported(others, "train").tobytes())  # a feature file has no such clips
    content = open_data(tmp_path / "train.h5")
    assert (dict(content.present), content.all_labels) == ({}, None)
    assert np.array_equal(content.features["audio"].any(axis=1), lacking["audio"].numpy())


@pytest.mark.slow
def test_without_the_kernel_training_is_unknown(audited, monkeypatch):
    started = training_command.IsolatedEncoder
    monkeypatch.setattr(
        training_command, "IsolatedEncoder", lambda order: started(type(order)(**{**vars(order), "by_kernel": False}))
    )
    report, _ = audited()
    assert (report.training, of_training(report).verdict) == ("unknown", Verdict.NOT_CHECKABLE)
    assert isinstance(report, AuditReport)


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """Train an encoder by two planted trainings, each (files, channels); return finding, folder and data."""
    splits = to_splits(synthetic(classes=2, train=30, valid=4, test=10, dimensions=(4, 5)))

    def run(*trainings, split="test"):
        data, left = [], iter(trainings)

        def training(order, splits, seconds):
            assert (order, seconds) == ("order", 9.0)
            data.append(splits)
            files, channels = next(left)
            return Results([{name: torch.tensor(list(text.encode())).byte() for name, text in files.items()}], channels)

        monkeypatch.setattr(training_command, "_training", training)
        finding = training_command.train_encoder("order", splits, split, tmp_path / "trained", 9.0)
        return finding, tmp_path / "trained", (splits, *data)

    return run


EVIDENCE = (
    "the command trained twice on an export of 30 training clips, then with noise for the test clips; the files of "
)


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ({"a": "x", "b/c": "y"}, {"b/c": "y", "a": "x"}, "equal"),
        ({"a": "x"}, {"a": "y"}, "different (the training is random)"),
        ({"a": "x"}, {"a": "x", "b": "y"}, "different (the training is random)"),
    ],
)
def test_the_files_of_the_first_training_are_kept_and_compared_with_those_of_the_second(
    trained, first, second, outcome
):
    finding, folder, (splits, *data) = trained((first, ()), (second, ()))
    assert finding == Finding("trained without test", Verdict.PASS, f"{EVIDENCE}both runs are {outcome}")
    files = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert files == first
    assert data[0] is splits
    assert torch.equal(data[1].train.matrix("audio"), splits.train.matrix("audio"))
    assert not torch.equal(data[1].test.matrix("audio"), splits.test.matrix("audio"))


def test_a_training_with_a_channel_is_not_checkable_and_no_file_is_written_outside_its_folder(trained):
    finding, _, _ = trained(({"a": "x"}, ("air", "water")), ({"a": "x"}, ("fire", "air")))
    assert finding.verdict is Verdict.NOT_CHECKABLE
    assert finding.evidence == f"{EVIDENCE}both runs are equal; the command could have received data by air"
    finding, _, _ = trained(({"a": "x"}, ()), ({"a": "x"}, ("fire",)))
    assert finding.evidence.endswith("received data by fire")
    with pytest.raises(InputError, match=r"wrote \.\./a outside its folder; write into \{output\} alone"):
        trained(({"../a": "x"}, ()), ({}, ()))
    with pytest.raises(InputError, match="needs training clips that are not scored"):
        trained(split="train")
