"""Memory of this process, read where Linux keeps it per program.

`resource.getrusage` is no measure of it: its peak goes through `exec`, so that a child begins with that of its parent.
"""

from pathlib import Path


def peak_bytes():
    """Give the resident memory of this process at its highest, since its start or since `forget_peak`."""
    return of_status("VmHWM")


def resident_bytes():
    """Give the resident memory of this process now."""
    return of_status("VmRSS")


def forget_peak():
    """Let the peak begin anew from now; raises `OSError` where the kernel forbids it."""
    Path("/proc/self/clear_refs").write_text("5")


def of_status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))
