"""A limit of processor time: it counts what a process uses itself, however busy the machine is."""

import signal


def limit_processor_time(seconds: float) -> None:
    """End this process once it and all its threads have used so many more seconds of processor time.

    The system does it, by a signal that nobody handles, so native code that never comes back is ended as well.

    Args:
        seconds: 0 lifts the limit.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def reached_limit(code: int | None) -> bool:
    """Tell by its exit code whether a process was ended by that limit."""
    return code == -signal.SIGPROF
