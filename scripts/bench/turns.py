"""Training runs of `aadml train` in separate processes, which train one epoch per request."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("refresh", "steps", "rest")
Parts: TypeAlias = dict[str, float]
"""Processor seconds of each of PARTS, and wall seconds of the steps ("wall")."""


class Training:
    """A training run that waits for requests.

    Args:
        stack: context that ends the processes.
        words: arguments of `aadml train`.
        checkout: folder of the code.
        threads: number of threads of each process.
        processes: number of processes that train together, as `torchrun` would start them.
    """

    def __init__(
        self, stack: ExitStack, words: Sequence[str], *, checkout: Path = ROOT, threads: int = 1, processes: int = 1
    ) -> None:
        command = [sys.executable, str(ROOT / "scripts" / "bench" / "epoch_by_epoch.py"), "train", *words]
        shared = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "PYTHONPATH": checkout}
        shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _free_port(), "WORLD_SIZE": processes}
        self._processes = []
        for rank in range(processes):
            own = {key: str(value) for key, value in (shared | {"RANK": rank, "LOCAL_RANK": rank}).items()}
            process = subprocess.Popen(
                command,
                env={**os.environ, **own},
                cwd=checkout,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self._processes.append(stack.enter_context(process))
            stack.callback(process.kill)

    def epoch(self) -> list[Parts]:
        """Train one epoch; return the times of each process."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [_heard(process) for process in self._processes]


def _heard(process: "subprocess.Popen[str]") -> Parts:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{"refresh"'):
            return dict(json.loads(line))
    raise SystemExit(f"a training ended before its epochs did, exit {process.wait()}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
