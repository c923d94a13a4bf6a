import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SECONDS = 240


@pytest.fixture(scope="session")
def job():
    """Start a program in several processes, as `torchrun` does; return exit codes, stdout and stderr of each."""

    def job(*arguments, processes=2, **options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        shared = {"WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes, "MASTER_ADDR": "127.0.0.1",
                  "MASTER_PORT": port, "OMP_NUM_THREADS": 1, "PYTHONPATH": ROOT}  # fmt: skip
        started = [
            subprocess.Popen(
                [sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=os.environ | {k: str(v) for k, v in (shared | {"RANK": rank, "LOCAL_RANK": rank}).items()},
                **options,
            )
            for rank in range(processes)
        ]  # fmt: skip
        try:
            said = [process.communicate(timeout=SECONDS) for process in started]
        finally:
            for process in started:
                process.kill()
        return [(process.returncode, *words) for process, words in zip(started, said, strict=True)]

    return job
