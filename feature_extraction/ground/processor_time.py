"""Limit of the processor time of a process; unlike wall-clock time, it is independent of the machine's load."""

import signal


def limit_processor_time(seconds: float) -> None:
    """End this process after further seconds of processor time, summed over its threads.

    The operating system sends an unhandled signal, which also ends native code that never returns.

    Args:
        seconds: 0 removes the limit.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def reached_limit(code: int | None) -> bool:
    """Return whether an exit code is that of a process that reached the limit."""
    return code == -signal.SIGPROF
