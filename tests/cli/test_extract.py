import csv
import json
import os
import re
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy.io import wavfile

from aadml.data.sample_clips import sample_data
from aadml.feature_extraction.feature_file.reading import read_features


def in_a_process(*arguments, **options):
    command = [sys.executable, "-c", "from aadml.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    sample_data(folder, clips=10, seconds=1.0, workers=1)
    return folder


@pytest.mark.slow
def test_sample_clips_become_features_without_a_loss(clips, tmp_path):
    done = in_a_process("extract", clips / "manifest.csv", "-o", tmp_path / "f.h5", "--workers", 1)
    assert done.returncode == 0
    assert "10  audio log-mel 128-d, visual hog-color 1024-d" in done.stdout
    assert (
        "no extractor is named, so the defaults without pretrained weights are used: log-mel, hog-color" in done.stderr
    )
    content = read_features(tmp_path / "f.h5")
    assert {name: values.shape for name, values in content.features.items()} == {
        "audio": (10, 128),
        "visual": (10, 1024),
    }
    assert "caption_5" in content.columns


@pytest.mark.slow
def test_a_failed_clip_is_exit_status_one_and_a_row_of_the_summary(clips, tmp_path):
    lines = (clips / "manifest.csv").read_text().splitlines()
    (clips / "few.csv").write_text("\n".join([*lines[:3], lines[3].replace(".mp4", ".mp5")]))
    arguments = ["extract", clips / "few.csv", "-o", tmp_path / "f.h5", "--workers", 1, "--audio", "log-mel"]
    done = in_a_process(*arguments, "--visual", "none")
    assert done.returncode == 1
    assert "missing                 1  the file does not exist or is not readable" in done.stdout
    assert f"{tmp_path / 'f.h5'}.failures.csv" in done.stdout
    again = in_a_process(*arguments, "--visual", "none", "--json")
    assert again.returncode == 1
    result = json.loads(again.stdout)
    assert {key: result[key] for key in ("clips", "ok", "failed", "reused")} == {
        "clips": 3,
        "ok": 2,
        "failed": {"missing": 1},
        "reused": 2,
    }


@pytest.mark.slow
def test_a_clip_without_sound_is_kept_said_and_trained_on(aadml, clips, tmp_path):
    lines = ["id,audio,visual,split"]
    with (clips / "manifest.csv").open() as file:
        for number, row in enumerate(csv.DictReader(file)):
            media = clips / row["media"]
            lines.append(f"{number},{'' if number == 3 else media},{media},{('train', 'test')[number % 2]}")
    (tmp_path / "manifest.csv").write_text("\n".join(lines))
    arguments = ["extract", tmp_path / "manifest.csv", "-o", tmp_path / "f.h5", "--workers", 1]
    code, out, _ = aadml(*arguments)
    assert (code, out.splitlines()[1]) == (
        0,
        "no-audio                1  the clip is kept, and audio is masked: there is no sound track",
    )
    code, out, _ = aadml(*arguments, "--json")
    assert (code, json.loads(out)["lacking"], json.loads(out)["ok"]) == (0, {"audio": 1}, 10)
    code, out, _ = aadml("inspect", tmp_path / "f.h5")
    assert (code, "audio is present in 5 of 5 train, 0 of 0 valid, 4 of 5 test clips" in out) == (0, True)
    rest = ["--epochs", 1, "--set", "training.criterion=map", "--runs", tmp_path / "runs"]
    assert aadml("train", "--data", tmp_path / "f.h5", *rest)[0] == 0


@pytest.mark.slow
def test_shards_merge_into_the_whole(clips, tmp_path):
    rest = ["--audio", "log-mel", "--visual", "none", "--workers", 1]
    for shard in ("0/2", "1/2"):
        name = f"{shard[0]}.h5"
        assert (
            in_a_process("extract", clips / "manifest.csv", "-o", tmp_path / name, "--shard", shard, *rest).returncode
            == 0
        )
    merged = in_a_process("merge", tmp_path / "1.h5", tmp_path / "0.h5", "-o", tmp_path / "f.h5")
    assert merged.returncode == 0
    assert "10 clips of 2 shards, 0 failed, audio 128-d" in merged.stdout
    with (clips / "manifest.csv").open() as file:
        assert [*read_features(tmp_path / "f.h5").ids] == [row["id"] for row in csv.DictReader(file)]
    alone = in_a_process("merge", tmp_path / "1.h5", "-o", tmp_path / "g.h5")
    assert (alone.returncode, alone.stderr) == (
        2,
        "aadml: the job is not complete, because shards are missing (0/2); extract and pass all shards\n",
    )


@pytest.mark.slow
def test_shards_of_one_name_never_overwrite_each_other(aadml, clips, tmp_path):
    lines = (clips / "manifest.csv").read_text().splitlines()
    (clips / "two.csv").write_text("\n".join([*lines[:2], lines[2].replace(".mp4", ".mp5")]))
    rest = ["-o", tmp_path / "s.h5", "--visual", "none", "--workers", 1]
    codes = [aadml("extract", clips / "two.csv", "--shard", f"{index}/2", *rest)[0] for index in (0, 1)]
    assert codes == [0, 1]
    names = ["s.0-of-2.h5", "s.0-of-2.h5.work", "s.1-of-2.h5", "s.1-of-2.h5.failures.csv", "s.1-of-2.h5.work"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    code, out, _ = aadml("merge", "-o", tmp_path / "s.h5")
    assert code == 1
    assert "1 clips of 2 shards, 1 failed" in out
    assert len(read_features(tmp_path / "s.h5").ids) == 1
    (tmp_path / "s.0-of-2.h5").unlink()
    message = "the job is not complete, because shards are missing (0/2); extract and pass all shards"
    assert aadml("merge", "-o", tmp_path / "s.h5")[::2] == (2, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--audio", "vgish"], "did you mean 'vggish'"),
        (["--visual", "log-mel"], "no visual extractor 'log-mel'"),
        (["--audio", "none", "--visual", "none"], "nothing is left to extract; pass the extractor"),
        (["--shard", "1"], "pass I/N"),
        (["--shard", "0/0"], "pass I/N"),
        (["--shard", "3/3"], "pass I/N with I from 0 to N-1"),
        (
            ["--set", "frames=2"],
            "does not have the form MODALITY.KEY=VALUE; write audio.KEY=VALUE, visual.KEY=VALUE or text.KEY=VALUE",
        ),
        (["--set", "visual.frames_per_secund=2"], "did you mean 'frames_per_second'"),
        (["--audio", "none", "--set", "audio.weights=x"], "this job has no audio extractor"),
        (["--weights", "untrained"], "accepts weights"),
        (["--set", "visual.frames_per_second=fast"], "frames_per_second"),
        (["--set", "visual.frames_per_second=0"], "frames_per_second"),
        (["--time-limit", "0"], "above zero"),
        (["--time-limit", "nan"], "time limit is nan s"),
        (["--max-seconds", "nan"], "max seconds is nan s"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_status_two(aadml, clips, tmp_path, arguments, message):
    code, _, error = aadml("extract", clips / "manifest.csv", "-o", tmp_path / "f.h5", *arguments)
    assert code == 2
    assert message in error.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "message"),
    [
        pytest.param(4_000, "such as a full disk, and run the same command again", id="ledger"),
        pytest.param(
            50_000, "f.h5 cannot be written (File too large); choose another path, or free", id="feature file"
        ),
    ],
)
def test_a_full_disk_is_one_line_and_the_work_so_far_is_kept(clips, tmp_path, size, message):
    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    arguments = ["extract", clips / "manifest.csv", "-o", tmp_path / "f.h5", "--workers", 1]
    full = in_a_process(*arguments, preexec_fn=small_disk)
    assert full.returncode == 2
    assert message in full.stderr.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["f.h5.work"]
    done = in_a_process(*arguments)
    assert done.returncode == 0
    if size > 10_000:
        assert " 0 of them known before" not in done.stdout


def heed_interruptions():
    # a suite that runs in the background inherits a shell's wish to ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_is_quiet_and_the_same_command_goes_on(clips, tmp_path, wait_until, number, status):
    lines = (clips / "manifest.csv").read_text().splitlines()
    rows = [lines[0], *(f"{turn}-{line}" for turn in range(15) for line in lines[1:])]
    (clips / "many.csv").write_text("\n".join(rows))
    command = [sys.executable, "-c", "from aadml.cli import main; main()", "extract", str(clips / "many.csv")]
    arguments = ["-o", str(tmp_path / "f.h5"), "--workers", "1"]
    records = tmp_path / "f.h5.work" / "records.jsonl"
    with subprocess.Popen(
        [*command, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interruptions,
    ) as job:
        wait_until(lambda: records.exists() and records.read_bytes().count(b"\n") > 20, job)
        os.killpg(job.pid, number)  # as Ctrl-C and schedulers do: to every process of the job
        _, errors = job.communicate(timeout=600)
    assert job.returncode == status
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["f.h5.work"]
    done = in_a_process("extract", clips / "many.csv", *arguments, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["reused"] > 0


@pytest.mark.slow
def test_a_read_only_place_is_an_input_error(clips, tmp_path):
    done = in_a_process("extract", clips / "manifest.csv", "-o", "/proc/f.h5", "--visual", "none")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_features_of_other_clips_are_not_replaced(aadml, tmp_path):
    assert aadml("convert", "synthetic:pairs", tmp_path / "f.h5")[0] == 0
    (tmp_path / "manifest.csv").write_text("id,media,split\na,gone.mp4,train\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, _, error = aadml("extract", tmp_path / "manifest.csv", "-o", tmp_path / "f.h5")
    names = re.escape(str(tmp_path / "f.h5")), re.escape(str(tmp_path / "manifest.csv"))
    advice = "so this feature file is not overwritten; choose another output, or remove this file"
    assert code == 2
    assert re.fullmatch(rf"{names[0]} shares none of its \d+ clips with {names[1]}, {advice}", error)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("place", [".", "..", "/"])
def test_the_status_of_a_folder_is_refused(aadml, place):
    code, _, error = aadml("status", place)
    assert code == 2
    assert error == f"{place} is a folder; pass the output of `aadml extract`"


def test_features_of_an_earlier_call_are_said_to_be_kept(aadml, tmp_path):
    (tmp_path / "manifest.csv").write_text("id,media,split\na,gone.mp4,train\n")
    arguments = ["extract", tmp_path / "manifest.csv", "-o", tmp_path / "f.h5", "--workers", 1]
    code, _, err = aadml(*arguments)
    assert (code, err.splitlines()[-1]) == (
        1,
        f"aadml: no features could be extracted; {tmp_path / 'f.h5'} was not written",
    )
    columns = {"id": ["a", "b"], "label": [0, 0], "split": ["train", "test"]}
    np.savez(tmp_path / "f.npz", audio=np.eye(2), visual=np.eye(2), **columns)
    assert aadml("convert", tmp_path / "f.npz", tmp_path / "f.h5")[0] == 0
    code, _, err = aadml(*arguments)
    kept = f"aadml: no features could be extracted; {tmp_path / 'f.h5'} keeps the features of an earlier call"
    assert (code, err.splitlines()[-1]) == (1, kept)
    assert aadml("inspect", tmp_path / "f.h5")[0] == 0


def test_the_option_that_tries_failed_clips_again_is_named_if_it_is_needed(aadml, tmp_path):
    (tmp_path / "text.wav").write_text("no sound")
    (tmp_path / "manifest.csv").write_text("id,media,split\na,gone.wav,train\n")
    arguments = ["extract", tmp_path / "manifest.csv", "-o", tmp_path / "f.h5", "--audio", "log-mel", "--workers", 1]
    listed = f"failed clips are listed in {tmp_path / 'f.h5'}.failures.csv"
    assert listed in aadml(*arguments)[1].splitlines()  # a missing file is tried again by the same command
    (tmp_path / "manifest.csv").write_text("id,media,split\na,gone.wav,train\nb,text.wav,train\n")
    for _ in range(2):
        assert f"{listed}; pass --retry-failed to try these clips again" in aadml(*arguments)[1].splitlines()


def test_every_remark_can_be_had(aadml, tmp_path):
    ids = [f"clip{number}" for number in range(7)]
    for name in ids:
        wavfile.write(tmp_path / f"{name}.wav", 16000, np.zeros(16000, dtype=np.int16))
    rows = [f"{name},{name}.wav,train" for name in ids]
    (tmp_path / "manifest.csv").write_text("\n".join(["id,media,split", *rows]))
    arguments = ["extract", tmp_path / "manifest.csv", "-o", tmp_path / "f.h5", "--visual", "none", "--workers", 1]
    code, _, err = aadml(*arguments)
    said = [line for line in err.splitlines() if "warning" in line]
    assert (code, len(said)) == (0, 6)
    assert said[-1] == "aadml: warning: the number of further warnings about clips is 2; pass --json to list all"
    _, out, _ = aadml(*arguments, "--json")
    assert json.loads(out)["remarks"] == [[name, "all samples of the sound are zero"] for name in ids]


def test_shards_of_failed_clips_are_merged_like_a_job_without_shards(aadml, tmp_path):
    rows = [f"{number},{number}.mp4,x,train" for number in range(4)]
    (tmp_path / "m.csv").write_text("\n".join(["id,media,label,split", *rows]))
    work = ["extract", tmp_path / "m.csv", "--audio", "log-mel"]
    assert aadml(*work, "-o", tmp_path / "whole.h5")[0] == 1
    for number in range(2):
        assert aadml(*work, "-o", tmp_path / "F.h5", "--shard", f"{number}/2")[0] == 1
    code, out, err = aadml("merge", "-o", tmp_path / "F.h5")
    assert (code, out.splitlines()[0]) == (1, "0 clips of 2 shards, 4 failed")
    assert f"no features could be extracted; {tmp_path / 'F.h5'} was not written" in err
    assert not (tmp_path / "F.h5").exists()
    lists = [(tmp_path / f"{name}.h5.failures.csv").read_bytes() for name in ("F", "whole")]
    assert lists[0] == lists[1]
