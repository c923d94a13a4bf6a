"""What `torchrun` says of the processes it started, and which of them speaks to people."""

import os
import signal
import sys
from contextlib import suppress
from datetime import timedelta
from types import FrameType

_STORE_SECONDS = 5.0  # the store of the job is in the launcher, which outlives its processes


class ProcessLost(Exception):  # noqa: N818 - what happened to the job, no defect of this process
    """Another process of the training ended or does not answer, or the launcher ends this one."""


def started() -> bool:
    """Tell whether `torchrun` started this process among several."""
    return process_count() > 1 and {"RANK", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def process_count() -> int:
    """Count the processes of the job, as the launcher says."""
    return int(os.environ.get("WORLD_SIZE", "1") or 1)


def process_rank() -> int:
    """Give the number of this process, as the launcher says."""
    return int(os.environ.get("RANK", "0") or 0)


def local_rank() -> int:
    """Give the number of this process on its machine."""
    return int(os.environ.get("LOCAL_RANK", "0") or 0)


def processes_here() -> int:
    """Count the processes of the job on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1") or 1)


def one_voice() -> None:
    """Leave stdout and stderr to the first process, and end in order where the launcher asks for it."""
    if not started():
        return
    signal.signal(signal.SIGTERM, _stopped)
    if process_rank():
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123


def claim_last_word() -> bool:
    """Tell whether this process is the first of the job that says why it ends; it may then write to stderr."""
    if not started() or _Claim.won:
        return True
    if _Claim.made:
        return False
    _Claim.made = True
    _ignore_stop()  # this process ends already, and says why
    _Claim.won = _first_in_store()
    sys.stderr = sys.__stderr__ if _Claim.won else open(os.devnull, "w")  # noqa: SIM115, PTH123
    if _Claim.won and process_rank() and sys.stderr is not None:
        sys.stderr.write("\n")  # the first process may have left a bar without an end
    return _Claim.won


class _Claim:
    made = won = False


def _first_in_store() -> bool:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    with suppress(RuntimeError):  # the launcher is gone: who is left may speak
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = TCPStore(address, port, is_master=False, timeout=timedelta(seconds=_STORE_SECONDS))
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return int(store.add(f"aadml/last-word/{attempt}", 1)) == 1
    return True


def _stopped(number: int, frame: FrameType | None) -> None:
    _ignore_stop()
    raise ProcessLost("a process of the training ended, or the job was stopped")


def _ignore_stop() -> None:
    if signal.getsignal(signal.SIGTERM) is _stopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
