"""Environment that `torchrun` sets for its workers, and the worker that writes to stdout and stderr."""

import os
import signal
import sys
from contextlib import suppress
from datetime import timedelta
from functools import cache
from types import FrameType

_STORE_SECONDS = 5.0  # the store of the job is in the launcher, which outlives its workers


class ProcessLost(Exception):  # noqa: N818 - an event of the job, not a defect of this worker
    """Error for another worker that ended or does not respond, or for a stop by the launcher."""


def started() -> bool:
    """Return whether `torchrun` started this process as one of several workers."""
    return process_count() > 1 and {"RANK", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def process_count() -> int:
    """Return the number of workers of the job."""
    return int(os.environ.get("WORLD_SIZE", "1") or 1)


def process_rank() -> int:
    """Return the rank of this worker in the job."""
    return int(os.environ.get("RANK", "0") or 0)


def local_rank() -> int:
    """Return the rank of this worker on its machine."""
    return int(os.environ.get("LOCAL_RANK", "0") or 0)


def processes_here() -> int:
    """Return the number of workers on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1") or 1)


def one_voice() -> None:
    """Discard stdout and stderr of this worker, except on rank 0, and convert SIGTERM to ProcessLost.

    The launcher sends SIGTERM to stop a worker. Without several workers of `torchrun`, the function has no effect.
    """
    if not started():
        return
    signal.signal(signal.SIGTERM, _stopped)
    if process_rank():
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123


def claim_last_word() -> bool:
    """Return whether this worker may report its end: True for the first worker of a job to end, and without a job.

    In a job, stderr of the worker is enabled if the worker may report, and discarded otherwise. If the launcher has
    ended, every worker may report.
    """
    return not started() or _claim()


@cache
def _claim() -> bool:
    _ignore_stop()  # this worker is already ending, for another reason
    won = _first_in_store()
    sys.stderr = sys.__stderr__ if won else open(os.devnull, "w")  # noqa: SIM115, PTH123
    if won and process_rank() and sys.stderr is not None:
        sys.stderr.write("\n")  # rank 0 may have written an unfinished progress bar
    return won


def _first_in_store() -> bool:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    with suppress(RuntimeError):  # the launcher ended: any worker may report
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = TCPStore(address, port, is_master=False, timeout=timedelta(seconds=_STORE_SECONDS))
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return int(store.add(f"aadml/last-word/{attempt}", 1)) == 1
    return True


def _stopped(number: int, frame: FrameType | None) -> None:
    _ignore_stop()
    raise ProcessLost("a process of the training run ended, or the job was stopped")


def _ignore_stop() -> None:
    if signal.getsignal(signal.SIGTERM) is _stopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
