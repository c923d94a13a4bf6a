"""`torchrun -m aadml train` as a user meets it: one run, one voice, the figures of one process; kills, resumption."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.fit import fit

ROOT = Path(__file__).parents[3]
SMALL = [
    "--set",
    "network.hidden=[16]",
    "--set",
    "training.batch=101",
    "--loss",
    "aa-triplet",
    "--data",
    "synthetic:ave",
]
PLAIN = {"network.hidden": [16], "training.batch": 101}
SECONDS, EPOCHS = 300, 6
DRAWN = "aadml: audio and visual are random numbers (synthetic), not features of recordings"


def start(folder, *arguments, processes=2):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}",
               "-m", "aadml", *map(str, arguments)]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True,
                            start_new_session=True)  # fmt: skip


def ended(process):
    """Exit code, lines of stdout, and what aadml itself says on stderr."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    sys.stderr.write(err)  # what the launcher says of its processes: shown where a test fails
    return process.returncode, out.splitlines(), [line for line in err.splitlines() if line.startswith("aadml:")]


def of_rank(rank, launcher):
    """The process of a rank that a launcher started."""
    for child in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError(f"no process of rank {rank}")


def records(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in ("seconds", "stage")} for line in lines]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run of two processes that nothing happened to, and what was said."""
    place = tmp_path_factory.mktemp("whole")
    code, out, said = ended(start(place, "train", *SMALL, "--epochs", EPOCHS, "--runs", "runs"))
    assert code == 0, said
    return place / out[-1], out, said


@pytest.mark.slow
def test_two_processes_write_one_run_with_the_figures_of_one_process(whole, tmp_path):
    folder, out, said = whole
    assert len(out) == 2
    assert said == [
        DRAWN,
        "aadml: warning: the very last epoch was chosen: training longer (training.epochs) may help",
        f"aadml: the weights of epoch {EPOCHS} of {EPOCHS} are kept",
    ]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert json.loads((folder / "environment.json").read_text())["processes"] == 2
    one = fit("synthetic:ave", loss="aa-triplet", epochs=EPOCHS, settings=PLAIN, runs=tmp_path).folder
    for mine, its in zip(records(folder), records(one), strict=True):
        assert mine == pytest.approx(its, rel=1e-4)
    weights = [load_file(place / "model.safetensors") for place in (folder, one)]
    # the bias of keys adds the same to all scores of a query: rounding alone moves it, as far as Adam's steps go
    kept = [key for key in weights[1] if not key.endswith("key.bias")]
    assert len(kept) > len(weights[1]) - 3
    assert all(weights[0][key].allclose(weights[1][key], atol=1e-4) for key in kept)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the processes of a job are found in /proc")
def test_a_killed_process_ends_the_job_in_one_line_and_the_run_goes_on_to_the_same_bytes(tmp_path, whole, wait_until):
    job = start(tmp_path, "train", *SMALL, "--epochs", EPOCHS, "--runs", "runs")
    wait_until(lambda: any(len(p.read_bytes().splitlines()) > 1 for p in tmp_path.glob("runs/*/metrics.jsonl")), job)
    os.kill(of_rank(0, job.pid), signal.SIGKILL)
    code, out, said = ended(job)
    (folder,) = (tmp_path / "runs").iterdir()
    again = f"torchrun --nproc-per-node 2 -m aadml train --resume runs/{folder.name}"
    assert code != 0
    assert not out
    assert said[:-1] == [DRAWN]
    assert said[-1].endswith(f"; continue with: {again}")
    code, out, _ = ended(start(tmp_path, *again.split()[5:]))
    assert (code, out[-1]) == (0, f"runs/{folder.name}")
    assert (folder / "model.safetensors").read_bytes() == (whole[0] / "model.safetensors").read_bytes()
    assert records(folder) == records(whole[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["train", "--data", "synthetic:ave", "--method", "acmr"], "acmr cannot be trained by several processes"),
        (["train", "--data", "nowhere.h5"], "nowhere.h5"),
        (["doctor"], "doctor was started by torchrun, but runs in one process; start the command without torchrun"),
    ],
)
def test_what_several_processes_cannot_do_is_refused_in_one_line(tmp_path, arguments, reason):
    code, out, said = ended(start(tmp_path, *arguments))
    assert code != 0
    assert not out
    assert len(said) == 1
    assert reason in said[0]
    assert not list(tmp_path.iterdir())


@pytest.fixture
def _launched(monkeypatch):
    variables = {"WORLD_SIZE": 2, "RANK": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 1}
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))


@pytest.mark.usefixtures("_launched")
def test_several_processes_never_render_the_sample_clips():
    with pytest.raises(InputError, match="pass data"):
        fit()


@pytest.mark.slow
def test_a_wait_that_takes_too_long_names_the_processes(tmp_path, job):
    program = tmp_path / "wait.py"
    program.write_text(
        "from datetime import timedelta\n"
        "import os, time\n"
        "from aadml.comparison.processes import group\n"
        "group.TIMEOUT = timedelta(seconds=3)\n"
        "from aadml.comparison.processes.launch import ProcessLost\n"
        "try:\n"
        "    with group.joined():\n"
        "        if not group.is_first():\n"
        "            time.sleep(8)\n"
        "        group.by_first(dict)\n"
        "except ProcessLost as lost:\n"
        "    print(lost)\n"
    )
    assert next(out for _, out, _ in job(program)) == "a process of the training run ended or does not respond\n"


@pytest.mark.slow
def test_processes_with_other_data_are_told_apart(tmp_path, job):
    program = tmp_path / "other.py"
    program.write_text(
        "import os, aadml\n"
        "splits = aadml.read('synthetic:ave')\n"
        "if os.environ['RANK'] == '1':\n"
        "    splits = splits.having('train', splits.train.select(__import__('torch').arange(500)))\n"
        "try:\n"
        "    aadml.fit(splits, epochs=1)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    told = {rank: out for rank, (_, out, _) in enumerate(job(program))}
    assert "InputError" in told[1]
    assert "the data of this process and of the job's first process differ" in told[1]
    assert "ProcessLost" in told[0]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the threads of a process are found in /proc")
def test_nothing_of_the_network_outlives_a_training(tmp_path, job):
    """Threads of the network that live to the end of the interpreter abort it now and then, after all is done."""
    program = tmp_path / "threads.py"
    program.write_text(
        "import aadml\n"
        "from pathlib import Path\n"
        "small = {'network.hidden': [16], 'training.batch': 100}\n"
        "aadml.fit('synthetic:ave', epochs=1, settings=small, runs=None)\n"
        "names = [place.read_text() for place in Path('/proc/self/task').glob('*/comm')]\n"
        "print([name.strip() for name in names if 'gloo' in name])\n"
    )
    assert [(code, out) for code, out, _ in job(program)] == [(0, "[]\n")] * 2


@pytest.mark.slow
def test_a_program_connects_several_times_and_may_bring_its_own_group(tmp_path, job):
    program = tmp_path / "times.py"
    program.write_text(
        "import torch\n"
        "from torch import distributed\n"
        "from aadml.comparison.processes import group\n"
        "def total():\n"
        "    with group.joined(), group.divided():\n"
        "        return group.summed([torch.ones(())])[0].item()\n"
        "totals = [total(), total()]\n"
        "distributed.init_process_group('gloo')\n"
        "print([*totals, total()], distributed.is_initialized())\n"
    )
    assert [(code, out) for code, out, _ in job(program)] == [(0, "[2.0, 2.0, 2.0] True\n")] * 2
