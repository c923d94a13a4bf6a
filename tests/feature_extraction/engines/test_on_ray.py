"""Decoding on Ray gives the same files as decoding on this machine, also after kills."""

import os
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from aadml.feature_extraction.engines import engine_of, on_ray
from aadml.feature_extraction.engines.decoding_workers import DecodedPart, DecodingSettings, Task, decode_all
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.job import extract
from aadml.feature_extraction.jobs.merge import merge
from aadml.feature_extraction.media.inputs import Limits

ROOT = Path(__file__).parents[3]
CLIPS = 24
JOB = """
import os, signal, sys
from pathlib import Path
from aadml.feature_extraction.jobs.job import extract

def actors():
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            own = f"RAY_JOB_OF={os.getpid()}".encode() in (place / "environ").read_bytes().split(bytes(1))
            if own and (place / "cmdline").read_bytes().startswith(b"ray::DecodingActor"):
                found.append(int(place.name))
        except OSError:
            pass
    return found

def report(done, failed):
    if done >= 8 and len(killed) < int(sys.argv[3]):
        killed.append(actors()[0])
        os.kill(killed[-1], signal.SIGKILL)

if __name__ == "__main__":
    killed = []
    os.environ["RAY_JOB_OF"] = str(os.getpid())
    outcome = extract(sys.argv[1], sys.argv[2], engine="ray", workers=2, progress=report)
    print(outcome.clips, len(outcome.failures), outcome.reused, len(killed))
"""


@pytest.fixture(scope="module")
def manifest(tmp_path_factory, render):
    folder = tmp_path_factory.mktemp("clips")
    lines = ["id,media,label,split"]
    for number in range(CLIPS):
        render(folder / f"{number}.mp4", seconds=0.5 + number / 50, tone=200 + 10 * number)
        lines.append(f"{number},{number}.mp4,{number % 5},train")
    (folder / "7.mp4").write_bytes(b"not a video")
    (folder / "manifest.csv").write_text("\n".join(lines))
    return folder / "manifest.csv"


@pytest.fixture(scope="module")
def local(manifest, tmp_path_factory):
    place = tmp_path_factory.mktemp("local") / "f.h5"
    with pytest.MonkeyPatch.context() as here:
        here.chdir(manifest.parent)  # failures name the media as the manifest's path does
        extract(manifest.name, place, workers=2)
    return place


def same(place, other):
    assert place.read_bytes() == other.read_bytes()
    assert Path(f"{place}.failures.csv").read_bytes() == Path(f"{other}.failures.csv").read_bytes()


@pytest.mark.slow
def test_shards_joined_are_the_file_of_one_job(manifest, local, tmp_path):
    for number in range(4):
        extract(manifest, tmp_path / "f.h5", shard=(number, 4), workers=1)
    merge((), tmp_path / "f.h5")
    assert (tmp_path / "f.h5").read_bytes() == local.read_bytes()


@pytest.mark.slow
def test_four_shards_of_real_media_joined_are_the_file_and_the_failures_of_one_process(shared_data, tmp_path):
    media = [path for path in sorted((shared_data / "media").rglob("*.*")) if path.parent.parent.name == "media"]
    if not media:
        pytest.skip("the folder media of the development data is not here")
    rows = [f"{number},{path},{path.parent.name},train" for number, path in enumerate(media)]
    (tmp_path / "manifest.csv").write_text("\n".join(["id,media,label,split", *rows]))
    whole = extract(tmp_path / "manifest.csv", tmp_path / "whole.h5", workers=1)
    for number in range(4):
        extract(tmp_path / "manifest.csv", tmp_path / "f.h5", shard=(number, 4), workers=1)
    merge((), tmp_path / "f.h5")
    same(tmp_path / "f.h5", tmp_path / "whole.h5")
    assert 0 < len(whole.failures) < whole.clips == len(media)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the actors are found in /proc")
@pytest.mark.parametrize("kills", [0, 1])
def test_ray_writes_the_bytes_of_this_machine_also_where_an_actor_is_killed(manifest, local, tmp_path, kills):
    (tmp_path / "job.py").write_text(JOB)
    command = [sys.executable, tmp_path / "job.py", manifest.name, tmp_path / "f.h5", str(kills)]
    path = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=manifest.parent, env=path, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == [str(CLIPS), "1", "0", str(kills)]
    same(tmp_path / "f.h5", local)
    assert extract(manifest, tmp_path / "f.h5", workers=1).reused == CLIPS


def test_without_ray_the_engine_says_how_to_get_it(manifest, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'aadml\[ray\]'"):
        extract(manifest, tmp_path / "f.h5", engine="ray")


@pytest.mark.parametrize(
    ("name", "reason"), [("rey", "did you mean 'ray'"), ("local:host", "does not accept an address"), ("", "no engine")]
)
def test_other_engines_are_refused(name, reason):
    with pytest.raises(InputError, match=reason):
        engine_of(name)


def test_the_local_engine_is_found_by_its_name():
    assert engine_of("local") is decode_all


@pytest.mark.parametrize("engine", ["ray", "ray:auto"])
def test_without_the_package_no_job_begins(manifest, tmp_path, monkeypatch, engine):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"ray, which is not installed; run pip install 'aadml\[ray\]'"):
        extract(manifest, tmp_path / "f.h5", engine=engine)
    assert list(tmp_path.iterdir()) == []


class _Lost(Exception):  # noqa: N818 - as Ray calls it
    pass


class _Result:
    def __init__(self, task):
        self.task = task


class _Ray:
    """Stand-in for Ray, whose actors decode at once; each name in `losses` loses that number of actors."""

    exceptions = SimpleNamespace(RayActorError=_Lost)

    def __init__(self, losses=None, silent=False):
        self.losses, self.silent, self.started, self.waited = Counter(losses), silent, 0, []

    def start(self):
        self.started += 1
        return SimpleNamespace(decode=SimpleNamespace(remote=_Result))

    def wait(self, running, timeout):
        self.waited.append((len(running), timeout))
        return ([] if self.silent else running[:1]), []

    def get(self, result):
        task = result.task
        if self.losses[task.number]:
            self.losses[task.number] -= 1
            raise _Lost
        return [DecodedPart("audio", detail=task.media["audio"])]


def decoded_on(ray, count=5, workers=2):
    tasks = (Task(number, {"audio": f"{number}.wav"}) for number in range(count))
    return {task.number: parts for task, parts in on_ray._decoded(ray, tasks, ray.start, workers, 7.0)}


def test_a_clip_fails_after_three_lost_actors_and_the_others_are_decoded():
    ray = _Ray({1: 2, 3: 3})
    found = decoded_on(ray)
    lost = DecodedPart("audio", reason="crashed", detail="3 processes of Ray were lost while they decoded the clip")
    assert found == {
        n: [lost if n == 3 else DecodedPart("audio", detail=str(Path(f"{n}.wav").absolute()))] for n in range(5)
    }
    assert ray.started == 2 + 4  # lost actors are replaced, and others are used again
    assert {timeout for _, timeout in ray.waited} == {7.0}
    assert max(count for count, _ in ray.waited) == 2
    assert decoded_on(_Ray(), count=0) == {}


def test_a_cluster_without_a_result_is_refused():
    with pytest.raises(InputError, match="engine ray: the cluster returned no result in 7 s; check that the cluster"):
        decoded_on(_Ray(silent=True))


@pytest.mark.parametrize(
    ("workers", "cluster", "clips", "count"),
    [(None, {"CPU": 3.0}, 9, 3), (None, {}, 9, 1), (4, {"CPU": 3.0}, 9, 4), (4, {"CPU": 3.0}, 2, 2)],
)
def test_the_number_of_actors_is_bounded_by_clips(monkeypatch, workers, cluster, clips, count):
    seen = []

    class Remote:
        def remote(self, settings):
            return settings

    @contextmanager
    def connected(*_):
        yield SimpleNamespace(
            cluster_resources=lambda: cluster, remote=lambda num_cpus: lambda kind: seen.append(num_cpus) or Remote()
        )

    monkeypatch.setattr(on_ray, "_connected", connected)
    monkeypatch.setattr(on_ray, "_decoded", lambda _, tasks, start, *given: seen.extend([start(), *given]) or [])
    settings = DecodingSettings({}, time_limit=10.0, limits=Limits())
    assert list(on_ray.decode(iter(()), settings, clips=clips, workers=workers)) == []
    assert seen == [1, settings, count, 900.0]


class _Package:
    """Stand-in for the package, whose first starts fail."""

    def __init__(self, failures=0, initialized=False):
        self.failures, self.initialized, self.calls, self.stopped = failures, initialized, [], 0

    def is_initialized(self):
        return self.initialized

    def init(self, **options):
        self.calls.append(options)
        if len(self.calls) <= self.failures:
            raise ConnectionError("no\nanswer")

    def shutdown(self):
        self.stopped += 1


@pytest.fixture
def connecting(monkeypatch):
    """Set a stand-in for the package and the environment of a cluster; return a function that connects."""

    def connecting(package, address="", cluster=None, workers=5):
        for name in (*on_ray._SETTINGS, "RAY_ADDRESS"):
            monkeypatch.delenv(name, raising=False)
        if cluster:
            monkeypatch.setenv("RAY_ADDRESS", cluster)
        monkeypatch.setenv("RAY_agent_register_timeout_ms", "7")
        monkeypatch.setattr(on_ray, "package", lambda: package)
        with on_ray._connected(address, workers) as ray:
            assert ray is package
            assert package.initialized or sys.stdout is sys.stderr
            return {name: os.environ.get(name) for name in on_ray._SETTINGS}

    return connecting


@pytest.mark.parametrize(
    ("address", "cluster", "where"),
    [("", None, "local"), ("auto", None, "auto"), ("", "10.0.0.7:1", "10.0.0.7:1"), ("auto", "10.0.0.7:1", "auto")],
)
def test_ray_is_started_here_or_found_at_an_address(connecting, address, cluster, where):
    package = _Package()
    settings = connecting(package, address, cluster)
    assert settings == {"RAY_USAGE_STATS_ENABLED": "0", "RAY_agent_register_timeout_ms": "7"}  # the user's value stays
    (options,) = package.calls
    paths = options.pop("runtime_env")["env_vars"]["PYTHONPATH"].split(os.pathsep)
    assert paths == [path for path in sys.path if path]
    new = (
        {"num_cpus": 5, "include_dashboard": False}
        if where == "local"
        else {"num_cpus": None, "include_dashboard": None}
    )
    assert options == {"address": where, "log_to_driver": False, "logging_level": "ERROR", **new}
    assert package.stopped == 1


@pytest.mark.parametrize(("address", "failures", "tries"), [("", 2, 3), ("", 3, 3), ("auto", 1, 1)])
def test_a_start_on_this_machine_is_tried_three_times(connecting, address, failures, tries):
    package = _Package(failures)
    if failures < tries:
        connecting(package, address)
    else:
        problem, remedy = (
            ("Ray cannot connect to auto", "unset RAY_ADDRESS and pass ray")
            if address
            else ("Ray cannot be st", "local$")
        )
        with pytest.raises(
            InputError, match=rf"engine ray: {problem}.* \(.*no.*\); pass ray:ADDRESS of a running cluster, or {remedy}"
        ):
            connecting(package, address)
    assert (len(package.calls), package.stopped) == (tries, 3 if address == "" else 1)


def test_a_running_connection_is_used_and_not_ended(connecting):
    package = _Package(initialized=True)
    connecting(package)
    assert (package.calls, package.stopped) == ([], 0)


def test_an_address_is_given_to_ray_alone(monkeypatch):
    monkeypatch.setattr(on_ray, "package", lambda: None)
    assert engine_of("ray") is on_ray.decode
    assert (engine_of("ray:auto").func, engine_of("ray:auto").keywords) == (on_ray.decode, {"address": "auto"})
    with pytest.raises(
        InputError, match="engine local:x: local does not accept an address; choose ray:ADDRESS, ray or l"
    ):
        engine_of("local:x")
