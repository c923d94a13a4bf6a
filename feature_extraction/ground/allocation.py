"""How the C library hands memory back."""

import ctypes
import os
import sys
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_IN_HEAP = 32 << 20
"""The largest block that glibc takes from its heap instead of mapping it anew."""
KEPT = 512 << 20


@cache
def keep_freed_memory() -> bool:
    """Let this process keep up to 512 MiB that it freed, instead of handing them back after every use.

    A training step frees its gradients, and the next one allocates as many; each page that was handed back has to be
    mapped and cleared again, which took a tenth of a step (docs/speed.md). Only glibc is asked, once, and not where the
    environment says how it shall allocate (MALLOC_...); no result depends on it.

    Returns:
        Whether it was done.
    """
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_IN_HEAP)) and bool(mallopt(M_TRIM_THRESHOLD, KEPT))
