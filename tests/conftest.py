import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import settings

from aadml.feature_extraction.foreign import hdf5, hdf5_look
from aadml.feature_extraction.ground import consent

# two test processes share the cores; and a child forked after threads of OpenMP have run waits for them for ever
os.environ.setdefault("OMP_NUM_THREADS", "1")

# a check that decides something draws the same examples each time; people draw new ones
settings.register_profile("aadml", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("aadml")


def hide_gpu(patch: pytest.MonkeyPatch) -> None:
    import torch

    patch.setattr(torch.cuda, "is_available", lambda: False)
    patch.setattr(torch.cuda, "device_count", lambda: 0)
    patch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture(autouse=True, scope="session")
def no_gpu() -> Iterator[pytest.MonkeyPatch]:
    """Hide the GPU, because recorded bytes are those of a CPU; tests with the mark `gpu` see it."""
    with pytest.MonkeyPatch.context() as patch:
        hide_gpu(patch)
        yield patch


@pytest.fixture(autouse=True)
def gpu_where_wanted(request: pytest.FixtureRequest, no_gpu: pytest.MonkeyPatch) -> Iterator[None]:
    """Show the GPU to a test with the mark `gpu`; skip the test where there is none."""
    if not request.node.get_closest_marker("gpu"):
        yield
        return
    import torch

    no_gpu.undo()
    if not torch.cuda.is_available():
        hide_gpu(no_gpu)
        pytest.skip("no GPU here")
    yield
    hide_gpu(no_gpu)


@pytest.fixture(autouse=True)
def no_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin each test without consent to code from outside, whatever a test before it typed."""
    monkeypatch.setattr(consent, "_names", set())
    monkeypatch.setattr(consent, "_addresses", set())
    monkeypatch.setattr(consent, "folders", [])


_INSPECTED = hdf5._inspected


@pytest.fixture(autouse=True, scope="session")
def looks_in_this_process() -> Iterator[None]:
    """Inspect HDF5 files in this process and without limits, which saves the start of a process for each file."""

    @lru_cache(maxsize=256)
    def inspected(path: str, size: int, modified: int, inode: int) -> str:
        return " ".join(hdf5_look.main(path, 0.0).split())[:500]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hdf5_look, "_limit", lambda seconds: None)
        patch.setattr(hdf5, "_inspected", inspected)
        yield


@pytest.fixture
def looks_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect HDF5 files in a process under limits, as for users; needed for damaged files."""
    monkeypatch.setattr(hdf5, "_inspected", _INSPECTED)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real development data; tests that use it are skipped where it is absent."""
    folder = Path(os.environ.get("AADML_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the development data folder is not here (set AADML_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session")
def small_features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A feature file of three classes that are easy to tell apart, for tests that read it alone."""
    from aadml.data.synthetic import synthetic
    from aadml.feature_extraction.feature_file.writing import write_features

    path = tmp_path_factory.mktemp("small") / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(12, 14), difficulty=0.2))
    return path


PEAK = """
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")))
"""


@pytest.fixture(scope="session")
def peak_bytes() -> Callable[[str], int]:
    """The memory of a Python program at its highest, in a process of its own.

    The kernel's figure of the program itself: `resource.getrusage` would begin with that of the process of the tests.
    """
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak memory of a program is read from /proc, which is not here")

    def peak_bytes(program: str) -> int:
        done = subprocess.run([sys.executable, "-c", program + PEAK], capture_output=True, text=True, check=True)
        return int(done.stdout.splitlines()[-1])

    return peak_bytes


@pytest.fixture(scope="session")
def wait_until() -> Callable[[Callable[[], object], subprocess.Popen], None]:
    """Wait for what a process is to do; where it ends before, or does not come to it, say what it wrote."""

    def wait_until(done: Callable[[], object], process: subprocess.Popen, *, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            late = time.monotonic() > deadline
            if late:
                process.kill()
            if late or process.poll() is not None:
                pytest.fail(f"exit code {process.poll()}: {process.communicate()[1]}")
            time.sleep(0.02)

    return wait_until


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """The system's Chromium, without a window; tests of pages are skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api")
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    path = next((place for place in found if place), None)
    if path is None:
        pytest.skip("no Chromium on this machine")
    with api.sync_playwright() as playwright:
        arguments = ["--autoplay-policy=no-user-gesture-required", "--mute-audio"]
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock in the place of `time.monotonic`; it shows the one number of this list."""
    hands = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: hands[0])
    return hands
