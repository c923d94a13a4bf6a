"""Limit of the processor time of a process. Unlike wall-clock time, processor time does not depend on the load."""

import signal

from aadml.feature_extraction.ground.errors import InputError

_MOST_SECONDS = 1e6


def limit_processor_time(seconds: float) -> None:
    """End this process after `seconds` more of processor time, summed over its threads.

    The operating system sends an unhandled signal, which also ends native code in an endless loop.

    Args:
        seconds: limit in seconds; 0 removes the limit.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def reached_limit(code: int | None) -> bool:
    """Return whether a process with this exit code reached the limit."""
    return code == -signal.SIGPROF


def require_seconds(name: str, seconds: float) -> None:
    """Raise InputError for a limit that is not above zero, or is above a million seconds.

    Args:
        name: name of the limit, for the message.
        seconds: limit in seconds.
    """
    if not 0 < seconds <= _MOST_SECONDS:
        raise InputError(f"{name} is {seconds:g} s; pass a number above zero, and at most {_MOST_SECONDS:,.0f} s")
