import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from aadml.feature_extraction.ground.worker_pool import Finished, Lost, Reported, WorkerPool, processors
from aadml.feature_extraction.ground.worker_process import Conditions

WORK = """
import logging, os, signal, sys, time, warnings
from concurrent.futures import ThreadPoolExecutor

ready = []

def setup():
    ready.append(os.environ["OMP_NUM_THREADS"])

def work(task, report):
    if task == "warn":
        warnings.warn("one voice")
        logging.getLogger("aadml.data").warning("%s voices", 2)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(warnings.warn, [f"thread {number}" for number in range(20)]))
        return "warned"
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "leave":
        report("leaving")
        os._exit(3)
    if task == "spin":
        while True:
            pass
    if task == "wait":
        time.sleep(1.5)
        return "waited"
    if task == "spin in turns":
        for turn in range(3):
            begin = time.process_time()
            while time.process_time() < begin + 0.4:
                pass
            report(turn)
        return "spun"
    if task == "raise":
        raise LookupError("not for me")
    if task == "sleep":
        report("asleep")
        time.sleep(60)
    if task == "ready":
        return ready
    if task == "threads":
        import cv2, torch
        return torch.get_num_threads(), cv2.getNumThreads()
    if task == "talk":
        while True:
            report("talking")
            time.sleep(0.01)
    for step in range(task):
        report(step)
    return task * task

def main(output):
    from aadml.feature_extraction.ground.worker_pool import WorkerPool
    with WorkerPool(work, 2) as pool:
        for event in pool.work_off(["sleep", "sleep"]):
            print("asleep", flush=True)

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    from own_work_of_pools import main
    main(sys.argv[1:])
"""


@pytest.fixture
def works(tmp_path, monkeypatch):
    (tmp_path / "own_work_of_pools.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("own_work_of_pools")
    del sys.modules["own_work_of_pools"]


def events_of(works, tasks, workers=2, **conditions):
    with WorkerPool(works.work, workers, Conditions(**conditions)) as pool:
        return list(pool.work_off(tasks))


@pytest.mark.parametrize("workers", [1, 3])
def test_every_task_is_finished_and_reports_come_in_their_order(works, workers):
    events = events_of(works, range(6), workers)
    finished = {event.task: event.value for event in events if isinstance(event, Finished)}
    assert finished == {task: task * task for task in range(6)}
    for task in range(6):
        assert [e.value for e in events if isinstance(e, Reported) and e.task == task] == list(range(task))


def test_a_process_imports_no_module_of_the_current_folder_as_it_starts(works, tmp_path, monkeypatch):
    for name in ("multiprocessing", "signal", "pickle", "runpy"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "bin" / "script"  # as an installed command, whose folder is the first of `sys.path`
    script.parent.mkdir()
    script.write_text(
        f"import sys; sys.path.append({str(tmp_path)!r}); import own_work_of_pools as works\n"
        "from aadml.feature_extraction.ground.worker_pool import Finished, WorkerPool\n"
        "with WorkerPool(works.work, 1) as pool:\n"
        "    print([event.value for event in pool.work_off([3]) if isinstance(event, Finished)])\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[9]", done.stderr
    assert not (tmp_path / "ran").exists()
    assert "PYTHONSAFEPATH" not in os.environ


def test_a_process_that_dies_costs_its_task_alone(works):
    events = events_of(works, [1, "die", 2, "leave", 3])
    assert {event for event in events if isinstance(event, Lost)} == {
        Lost("die", "SIGKILL", late=False),
        Lost("leave", "exit status 3", late=False),
    }
    assert {event.value for event in events if isinstance(event, Finished)} == {1, 4, 9}
    assert Reported in {type(event) for event in events if event.task == "leave"}


def test_a_task_past_its_limit_is_killed_and_its_process_replaced(works):
    events = events_of(works, ["spin", 3], workers=1, time_limit=1.0)
    assert [event for event in events if not isinstance(event, Reported)] == [
        Lost("spin", "SIGKILL", late=True),
        Finished(3, 9),
    ]


def test_what_the_work_raises_is_raised_here(works):
    with pytest.raises(LookupError, match="not for me"):
        events_of(works, ["raise"])
    assert multiprocessing.active_children() == []


def test_warnings_of_processes_go_to_the_logger_once_and_not_to_stderr(works, caplog, capfd):
    events = events_of(works, ["warn", "ready", "warn", 1, "warn"])
    assert sum(isinstance(event, Finished) for event in events) == 5
    expected = ["one voice", "2 voices", *(f"thread {number}" for number in range(20))]
    assert sorted(record.getMessage() for record in caplog.records) == sorted(expected)
    assert {(record.name, record.levelname) for record in caplog.records} == {("aadml", "WARNING")}
    assert capfd.readouterr().err == ""


def test_each_process_is_set_up_once_and_computes_with_one_thread(works, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    (event,) = events_of(works, ["ready"], setup=works.setup)
    assert event.value == ["1"]
    (event,) = events_of(works, ["ready"], setup=works.setup, one_thread=False)
    assert event.value == ["7"]
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_a_worker_of_one_thread_computes_so_in_torch_and_opencv(works):
    (event,) = events_of(works, ["threads"])
    assert event.value == (1, 1)


def test_no_task_starts_no_process(works):
    with WorkerPool(works.work, 2) as pool:
        assert list(pool.work_off([])) == []
        assert multiprocessing.active_children() == []


def test_a_process_that_cannot_start_is_a_defect(works, tmp_path):
    (tmp_path / "own_work_of_pools.py").write_text("raise ImportError('gone')")
    os.utime(tmp_path / "own_work_of_pools.py", (1, 1))
    with pytest.raises(RuntimeError, match="ended with exit status 1 at its start"):
        events_of(works, [1])
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("grace", [0.0, 0.2])
def test_no_process_is_left_when_the_caller_stops_early(works, grace):
    with WorkerPool(works.work, 2, Conditions(grace=grace)) as pool:
        assert next(pool.work_off(["sleep", "sleep"])).value == "asleep"
        assert multiprocessing.active_children()
    assert multiprocessing.active_children() == []


def heed_interruptions():
    # a suite that runs in the background inherits a shell's wish to ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_an_interruption_leaves_no_process_and_only_the_caller_speaks_of_it(works, tmp_path):
    job = subprocess.Popen(
        [sys.executable, str(tmp_path / "own_work_of_pools.py")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=heed_interruptions,
    )  # fmt: skip
    assert [job.stdout.readline(), job.stdout.readline()] == ["asleep\n"] * 2
    children = children_of(job.pid)
    assert len(children) >= 2
    os.killpg(job.pid, signal.SIGINT)  # it reaches the whole group, as Ctrl-C does
    _, said = job.communicate(timeout=600)
    assert said.count("KeyboardInterrupt") == 1
    assert not [child for child in children if is_alive(child)]


def test_a_process_whose_parent_is_gone_ends_at_its_next_word(works):
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=served, args=(there, works.work), daemon=True)
    process.start()
    there.close()
    assert here.recv() == ("ready", None)
    here.send("talk")
    assert here.recv() == ("report", "talking")  # it is at work, and its next word finds nobody
    here.close()
    process.join(60)
    assert process.exitcode == 1


def served(connection, work):
    from aadml.feature_extraction.ground.consent import decision
    from aadml.feature_extraction.ground.worker_process import _serve

    _serve(connection, work, Conditions(), decision())


def children_of(parent):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=True)
    return [int(pid) for pid in listed.stdout.split()]


def is_alive(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.slow
def test_a_limit_of_processor_time_ends_what_computes_and_not_what_waits(works):
    events = events_of(works, ["wait", "spin", "wait", 2], processor_limit=1.0)
    assert {event.task: event.value for event in events if isinstance(event, Finished)} == {"wait": "waited", 2: 4}
    assert [event for event in events if isinstance(event, Lost)] == [Lost("spin", "SIGPROF", True)]


@pytest.mark.slow
def test_a_limit_of_processor_time_begins_anew_with_every_report(works):
    events = events_of(works, ["spin in turns"], workers=1, processor_limit=1.0)
    assert [event.value for event in events] == [0, 1, 2, "spun"]
    events = events_of(works, ["spin in turns"], workers=1, processor_limit=0.2)
    assert events == [Lost("spin in turns", "SIGPROF", True)]


def test_a_script_without_a_main_guard_may_start_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from aadml.data.sample_clips import sample_data\n"
        f"sample_data({str(tmp_path / 'clips')!r}, clips=10, seconds=0.5, workers=2)\n"
        "print(__file__, __spec__)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{script} None\n"  # the script ran once, and has its name back


def test_processors_are_counted_where_the_system_tells_nothing_of_this_process(monkeypatch):
    assert processors() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processors() == os.cpu_count()
