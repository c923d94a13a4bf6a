"""What a process can do that the kernel isolates."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aadml.protocols.isolation import libraries

ISOLATED = """
import json, os, socket, subprocess, sys
from pathlib import Path
from aadml.protocols.isolation import isolate, libraries

scratch, readable, program, secret = map(Path, sys.argv[1:])
isolate(scratch, [*libraries(), str(readable), str(program), "/no/such/place"])

def fails(action, *arguments):
    try:
        action(*arguments)
    except OSError as error:
        return error.strerror
    return ""

facts = {
    "reads": [fails(place.read_bytes) for place in (readable / "file", secret, Path("/etc/hostname"))],
    "lists": [fails(os.listdir, place) for place in (readable, secret.parent)],
    "runs": [subprocess.run([name]).returncode for name in ("true", program)],
    "descriptors": os.listdir("/proc/self/fd"),
    "writes": [fails(Path(place, "made").write_text, "x") for place in (scratch, "/dev/shm", readable, secret.parent)],
    "devices": [fails(Path(place).write_text, "x") for place in ("/dev/null", "/dev/zero")],
    "empty": [os.listdir(scratch), os.listdir("/dev/shm")],
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "network": [name for _, name in socket.if_nameindex()],
    "user": [os.getuid(), os.getgid()],
    "privileges": Path("/proc/self/status").read_text().partition("NoNewPrivs:")[2].split()[0],
}
print(json.dumps(facts), flush=True)
sys.exit(3)
"""


@pytest.fixture
def needs_isolation():
    """Skip the test where the kernel does not isolate processes, according to other programs than aadml."""
    landlock = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)  # its version
    namespaces = ["unshare", "--user", "--map-current-user", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork"]
    mounts = [*namespaces, "sh", "-c", "mount -t tmpfs none /dev/shm && mount -t proc proc /proc"]
    if landlock < 1 or subprocess.run(mounts, capture_output=True, check=False).returncode:
        pytest.skip("the kernel does not isolate processes here")


@pytest.mark.usefixtures("needs_isolation")
def test_an_isolated_process_reads_what_is_named_and_writes_into_its_own_memory_alone(tmp_path):
    for name in ("scratch", "readable", "secrets"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 4\n")
    program.chmod(0o755)
    places = [tmp_path / "scratch", tmp_path / "readable", program, tmp_path / "secrets" / "file"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", ISOLATED, *map(str, places)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    denied, fixed = "Permission denied", "Read-only file system"
    assert json.loads(done.stdout) == {
        "reads": ["", denied, ""],
        "lists": ["", denied],
        "runs": [0, 4],
        "descriptors": ["0", "1", "2", "3"],
        "writes": ["", "", fixed, fixed],
        "devices": ["", ""],
        "empty": [["made"], ["made"]],
        "processes": ["1"],
        "network": ["lo"],
        "user": [os.getuid(), os.getgid()],
        "privileges": "1",
    }
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == ["file"]
    assert not Path("/dev/shm/made").exists()


def test_the_libraries_of_this_interpreter_and_of_this_package_can_be_read():
    root = Path(__file__).resolve().parents[2]
    folders = libraries()
    assert len(set(folders)) == len(folders)
    assert all(Path(folder).exists() and os.path.realpath(folder) == folder for folder in folders)
    for place in (os.__file__, json.__file__, pytest.__file__, sys.executable, root / "aadml" / "__init__.py"):
        assert any(Path(place).resolve().is_relative_to(folder) for folder in folders), place
    assert not any((root / "tests").is_relative_to(folder) for folder in folders)
