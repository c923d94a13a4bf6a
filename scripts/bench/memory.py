"""Memory of this process, read from files in which Linux counts it per program.

The peak of `resource.getrusage` survives `exec`, so that a child process starts with the peak of its parent.
"""

from pathlib import Path


def peak_bytes():
    """Return the peak resident memory of this process in bytes, since its start or since `forget_peak`."""
    return of_status("VmHWM")


def resident_bytes():
    """Return the current resident memory of this process in bytes."""
    return of_status("VmRSS")


def forget_peak():
    """Reset the peak; raise `OSError` if the kernel forbids it."""
    Path("/proc/self/clear_refs").write_text("5")


def of_status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))
