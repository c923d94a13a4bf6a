"""A job that is killed at random moments, without a warning, ends in the same bytes as one left in peace."""

import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

CLIPS = 24
JOB = """
import sys
from aadml.feature_extraction.backbones import extractor
from pathlib import Path
from aadml.feature_extraction.jobs.extract import execute
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.manifest import read_manifest

if __name__ == "__main__":
    extractors = [extractor("log-mel", "audio"), extractor("hog-color", "visual")]
    report = lambda done, failed: print(done, flush=True)
    plan = ExtractionPlan(read_manifest(sys.argv[1]), Path(sys.argv[2]), extractors, workers=2)
    execute(plan, report)
"""


def start(folder, output):
    command = [sys.executable, str(folder / "job.py"), str(folder / "manifest.csv"), str(output)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, render):
    folder = tmp_path_factory.mktemp("kills")
    (folder / "job.py").write_text(JOB)
    lines = ["id,media,label,split"]
    for number in range(CLIPS):
        render(folder / f"{number}.mp4", seconds=0.5 + number / 50, tone=200 + 10 * number)
        lines.append(f"{number},{number}.mp4,{number % 5},train")
    (folder / "7.mp4").write_bytes(b"not a video")
    (folder / "manifest.csv").write_text("\n".join(lines))
    job = start(folder, folder / "peace.h5")
    job.communicate(timeout=600)
    return folder


def kill_after(job, clips, seconds):
    """Kill a job once it has reported so many clips and so many seconds more have passed; tell whether it still ran."""
    for line in job.stdout:
        if int(line) >= clips:
            break
    time.sleep(seconds)
    running = job.poll() is None
    job.send_signal(signal.SIGKILL)
    job.communicate(timeout=600)
    return running


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_change_nothing(folder, tmp_path, kills):
    generator, done = random.Random(kills), 0
    output = tmp_path / "f.h5"
    while done < kills:
        if kill_after(start(folder, output), generator.randrange(1, CLIPS), generator.uniform(0, 0.2)):
            done += 1
        else:  # it was done before the kill came: once more from the beginning
            shutil.rmtree(tmp_path)
            tmp_path.mkdir()
    job = start(folder, output)
    job.communicate(timeout=600)
    assert job.returncode == 0
    for name in ["{}.h5", "{}.h5.failures.csv"]:
        assert (tmp_path / name.format("f")).read_bytes() == (folder / name.format("peace")).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.h5", "f.h5.failures.csv", "f.h5.work"]
