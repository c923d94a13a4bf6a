"""`aadml train` as a user meets it: a session that works, and every way to get it wrong."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.runs.manifest import is_run
from tests.edited_hdf5 import edited

SMALL = ["network.hidden=[16]", "training.batch=20", "training.learning_rate=0.01"]


def sets(*more):
    return [part for setting in (*SMALL, *more) for part in ("--set", setting)]


def content(**options):
    defaults = {"classes": 3, "train": 60, "valid": 15, "test": 30, "dimensions": (6, 8), "difficulty": 0.2}
    return synthetic(**{**defaults, **options})


def test_the_json_of_a_training_run_has_the_run_folder(aadml, features, tmp_path):
    call = ("train", "--data", features, "--method", "random", "--runs", tmp_path)
    result = json.loads(aadml(*call, "--json")[1])
    folder = Path(result.pop("run"))
    assert result == json.loads((folder / "evaluation.json").read_text())
    assert is_run(Path(aadml(*call)[1].splitlines()[-1]))


@pytest.mark.slow
def test_a_session_trains_evaluates_embeds_and_reports(aadml, features, tmp_path):
    runs = tmp_path / "runs"
    code, out, err = aadml("train", "--data", features, "--loss", "aa-triplet", "--epochs", 5, "--runs", runs, *sets())
    assert code == 0, err
    folder = runs / out.strip().splitlines()[-1].rsplit("/", 1)[-1]
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "config.yaml", "environment.json", "evaluation.json", "manifest.json", "metrics.jsonl",
        "model.json", "model.safetensors",
    ]  # fmt: skip
    stored = json.loads((folder / "evaluation.json").read_text())
    assert stored["map_mean"] > 1.2 * stored["chance"]
    assert stored["protocol"] == "inductive"
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 5
    code, out, _ = aadml("evaluate", folder, "--json")
    assert code == 0
    assert json.loads(out)["map_mean"] == pytest.approx(stored["map_mean"])
    plain = (folder / "evaluations" / "inductive-test.json").read_text()
    assert aadml("evaluate", folder, "--exclude-partner", "--metric", "running")[0] == 0
    assert (folder / "evaluations" / "inductive-test-without-partner-running.json").is_file()
    assert (folder / "evaluations" / "inductive-test.json").read_text() == plain
    code, _, err = aadml("embed", folder, features, "-o", tmp_path / "e.h5")
    assert code == 0, err
    code, out, _ = aadml("evaluate", "--embeddings", tmp_path / "e.h5", "--json")
    assert json.loads(out)["map_mean"] == pytest.approx(stored["map_mean"])
    code, _, err = aadml("report", folder)
    assert code == 0, err
    page = (folder / "report.html").read_text()
    assert "<svg" in page
    assert 'src="http' not in page
    assert "<script" not in page  # there are no media to play
    assert "pass --media MANIFEST" in page


def test_training_on_the_written_config_repeats_the_run(aadml, small_run, tmp_path):
    code, out, err = aadml("train", "--config", small_run / "config.yaml", "--runs", tmp_path / "again")
    assert code == 0, err
    again = tmp_path / "again" / out.strip().splitlines()[-1].rsplit("/", 1)[-1]
    assert (again / "model.safetensors").read_bytes() == (small_run / "model.safetensors").read_bytes()
    assert (again / "config.yaml").read_text() == (small_run / "config.yaml").read_text()


def test_a_finished_run_is_not_trained_again(aadml, small_run):
    before = (small_run / "model.safetensors").stat().st_mtime_ns
    code, _, err = aadml("train", "--resume", small_run)
    assert code == 0
    assert "finished" in err
    assert (small_run / "model.safetensors").stat().st_mtime_ns == before


def test_resume_takes_no_other_settings(aadml, small_run):
    code, _, err = aadml("train", "--resume", small_run, "--epochs", 3)
    assert code == 2
    assert "--epochs" in err


@pytest.mark.slow
def test_a_changed_data_file_is_not_resumed_silently(aadml, own_run, features):
    (own_run / "evaluation.json").unlink()
    write_features(features, content(seed=5))
    code, _, err = aadml("train", "--resume", own_run)
    assert code == 2
    assert "changed" in err


def bad(name, tmp_path):
    """Give the data argument, further arguments, and what the message must say."""
    path = tmp_path / "bad.h5"
    whole = content()
    if name == "a missing file":
        return tmp_path / "nothing.h5", [], "does not exist"
    if name == "a folder":
        return tmp_path, [], "layout"
    if name == "no HDF5 at all":
        path.write_bytes(b"not an h5 file")
        return path, [], "bad.h5"
    if name == "a missing key":
        write_features(path, whole)
        with edited(path) as file:
            del file["label"]
        return path, [], "label"
    if name == "NaN features":
        write_features(path, whole)
        with edited(path) as file:
            file["audio"][3, 1] = np.nan
        return path, [], "NaN"
    if name == "labels of the wrong length":
        write_features(path, whole)
        with edited(path) as file:
            kept = file["label"][:-1]
            del file["label"]
            file["label"] = kept
        return path, [], "label"
    if name == "one class only":
        write_features(path, content(classes=1))
        return path, [], "class"
    if name == "a class without test items":
        splits = ["train" if y == 0 and s == "test" else s for y, s in zip(whole.labels, whole.splits, strict=True)]
        write_features(path, replace(whole, splits=tuple(splits)))
        return path, [], "test"
    write_features(path, whole)
    return {
        "k larger than every class": (path, ["--loss", "aa-triplet", "--k", 1000], "k"),
        "heads that do not divide": (path, ["--loss", "aa-triplet", "--set", "proxy.heads=2"], "heads"),
        "an unknown loss": (path, ["--loss", "tripelt"], "triplet"),
        "an unknown key": (path, ["--set", "loss.margn=1"], "margin"),
        "an unknown method": (path, ["--method", "aadlm"], "aadml"),
        "an unknown config": (path, ["--config", "nowhere"], "recommended"),
        "a device that is not here": (path, ["--device", "cuda:77"], "device"),
        "no epochs": (path, ["--epochs", 0], "epochs"),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "a missing file", "a folder", "no HDF5 at all", "a missing key", "NaN features", "labels of the wrong length",
        "one class only", "a class without test items", "k larger than every class", "heads that do not divide",
        "an unknown loss", "an unknown key", "an unknown method", "an unknown config", "a device that is not here",
        "no epochs",
    ],
)  # fmt: skip
def test_bad_input_is_one_line_that_says_what_to_do_and_leaves_nothing(name, aadml, tmp_path):
    data, more, says = bad(name, tmp_path)
    code, out, err = aadml("train", "--data", data, "--runs", tmp_path / "runs", *sets(), *more)
    assert code == 2, out + err
    assert says in err
    assert "\n" not in err.strip().splitlines()[-1]
    assert "Traceback" not in err
    assert not list((tmp_path / "runs").glob("*")) if (tmp_path / "runs").exists() else True


def command(*arguments):
    return [sys.executable, "-c", "from aadml.cli import main; main()", *map(str, arguments)]


def environment():
    return os.environ | {"OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_leaves_no_half_written_file(features, tmp_path):
    def small_files_only():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = subprocess.run(
        command("train", "--data", features, "--epochs", 1, "--runs", tmp_path / "runs", *sets()),
        capture_output=True, text=True, env=environment(), preexec_fn=small_files_only, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [
        path for path in (tmp_path / "runs").rglob("*") if "partial" in path.name or path.suffix == ".safetensors"
    ]


def heed_interruptions():
    # a suite that runs in the background inherits a shell's wish to ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_kills_at_random_moments_end_in_the_same_bytes(features, tmp_path, generator):
    more = sets("training.epochs=60", "training.batch=10")
    subprocess.run(
        command("train", "--data", features, "--loss", "aa-triplet", "--runs", tmp_path / "whole", *more),
        check=True, capture_output=True, env=environment(),
    )  # fmt: skip
    (whole,) = (tmp_path / "whole").iterdir()
    begin = ["train", "--data", features, "--loss", "aa-triplet", "--runs", tmp_path / "killed", *more]
    arguments, kills = begin, 0
    while kills < 8:  # scripts/soak/kill_points does every point
        process = subprocess.Popen(
            command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
        )
        time.sleep(float(generator.uniform(1.0, 6.0)))
        finished = process.poll() is not None
        process.kill()
        process.wait()
        kills += 1
        folders = list((tmp_path / "killed").glob("*"))
        if finished:
            assert same(whole, folders[0])
            subprocess.run(["rm", "-r", folders[0]], check=True)
            arguments = begin
        elif folders and has_begun(folders[0]):
            arguments = ["train", "--resume", folders[0]]
        elif folders:
            subprocess.run(["rm", "-r", folders[0]], check=True)
    subprocess.run(command(*arguments), check=True, capture_output=True, env=environment())
    (killed,) = (tmp_path / "killed").iterdir()
    assert same(whole, killed)


def has_begun(run):
    return (run / "manifest.json").is_file() and "config.yaml" in (run / "manifest.json").read_text()


def lines_of(run):
    return (run / "metrics.jsonl").read_text().splitlines()


def same(one, other):
    assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
    first, second = (
        [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines_of(run)]
        for run in (one, other)
    )
    assert first == second
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_continues_to_the_same_bytes(aadml, features, tmp_path, wait_until, number, status):
    more = sets("training.epochs=100")
    process = subprocess.Popen(
        command("train", "--data", features, "--loss", "aa-triplet", "--runs", tmp_path / "runs", *more),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        preexec_fn=heed_interruptions,
    )  # fmt: skip
    wait_until(lambda: list((tmp_path / "runs").glob("*/state-*.safetensors")), process)
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == status
    assert "--resume" in errors
    (folder,) = (tmp_path / "runs").iterdir()
    done = len((folder / "metrics.jsonl").read_text().splitlines())
    assert 0 < done < 100
    code, _, err = aadml("train", "--resume", folder)
    assert code == 0, err
    code, _, _ = aadml("train", "--config", folder / "config.yaml", "--runs", tmp_path / "whole")
    assert code == 0
    (whole,) = (tmp_path / "whole").iterdir()
    assert same(whole, folder)
    assert load_file(folder / "model.safetensors")


def test_help_answers_without_importing_torch():
    code = "import sys; from aadml.cli import cli; cli(['--help'], standalone_mode=False); "
    code += "assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "sample-data" in done.stdout


def test_an_unknown_command_is_answered_with_the_nearest():
    done = subprocess.run(command("trian"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "train" in done.stderr


@pytest.mark.slow
def test_features_of_an_untrained_network_are_called_so_in_log_and_report(aadml, tmp_path):
    provenance = {"audio": {"extractor": "vggish", "parameters": {"weights": "untrained"}}}
    write_features(tmp_path / "f.h5", replace(content(), provenance=provenance))
    code, out, err = aadml(
        "train", "--data", tmp_path / "f.h5", "--epochs", 1, "--runs", tmp_path / "runs", "--loss", "triplet", *sets()
    )
    assert code == 0, err
    said = "audio was computed by an untrained network (random weights)"
    assert said in err
    folder = tmp_path / "runs" / out.strip().splitlines()[-1].rsplit("/", 1)[-1]
    assert aadml("report", folder)[0] == 0
    assert said in (folder / "report.html").read_text()


@pytest.mark.parametrize("flag", [["--epochs", 5], ["--seed", 0], ["--runs", "runs"], ["--set", "proxy.k=2"]])
def test_a_resumed_run_takes_no_other_flag(aadml, small_run, flag):
    code, _, err = aadml("train", "--resume", small_run, *flag)
    assert (code, err) == (2, f"--resume reads all options from {small_run / 'config.yaml'}; omit {flag[0]}")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["train", "--data", "f.h5", "--config", ""], "train: --config"),
        (["train", "--config=", "--data", "f.h5"], "train: --config"),
        (["index", "", "-o", "f.idx"], "index: argument 1"),
        (["embed", "run", "", "-o", "e.h5"], "embed: argument 2"),
    ],
)
def test_an_empty_argument_is_not_left_to_its_default(aadml, tmp_path, monkeypatch, words, place):
    monkeypatch.chdir(tmp_path)
    code, _, err = aadml(*words)
    argument = place.partition(": ")[2]
    assert (code, err) == (2, f"{place} is empty; pass a value, or omit {argument} if {argument} is not required")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["merge", "x\0y", "-o", "merged.h5"], ["verify", "x\0y"], ["train", "--data=x\0y"]])
def test_a_null_character_in_an_argument_is_refused(aadml, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = aadml(*words)
    assert (code, err) == (2, f"{words[0]}: {words[1]!r} contains a null character; remove the character")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["--loss", "aa-triplet", "--k", 1000],
         "proxy.k is 1000, but the largest class has 20 clips; pass at most 19"),
        (["--criterion", "recall@16"],
         "training.criterion is recall@16, but there are 15 validation clips; set training.criterion to a metric with "
         "a cutoff below 15, or to map"),
        (["--config", "pairs", "--set", "neighbors.positives=own", "--set", "neighbors.k=60"],
         "neighbors.k is 60, but there are 60 training clips, so that no clip is a negative; pass at most 58, or set "
         "neighbors.weights to affine or softmax and choose a loss from supcon, cross-clr, dsl"),
    ],
)  # fmt: skip
def test_what_the_clips_cannot_give_is_refused_before_there_is_a_run(aadml, features, tmp_path, settings, said):
    code, _, err = aadml("train", "--data", features, *settings, "--epochs", 1, "--runs", tmp_path / "runs")
    assert (code, err) == (2, said)
    assert not (tmp_path / "runs").exists()


def test_one_modality_alone_is_refused(aadml, features, tmp_path):
    code, _, err = aadml("train", "--data", features, "--modalities", "audio", "--runs", tmp_path / "runs")
    assert (code, err) == (
        2,
        f"modalities: [audio] does not name two modalities; choose at least two of the modalities "
        f"of {features}: audio, visual",
    )
