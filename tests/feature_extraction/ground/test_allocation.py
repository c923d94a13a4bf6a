import os
import platform
import subprocess
import sys

import pytest

from feature_extraction.ground.allocation import keep_freed_memory

PROGRAM = """
import resource, sys
import numpy as np
from feature_extraction.ground.allocation import keep_freed_memory
assert sys.argv[1] == "no" or keep_freed_memory()
for _ in range(20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [np.ones(1 << 21) for _ in range(6)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

ON_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked")


@ON_GLIBC
def test_memory_that_was_freed_is_used_again_without_page_faults():
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    faults = [
        int(
            subprocess.run(
                [sys.executable, "-c", PROGRAM, asked],
                env=clean,
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            ).stdout
        )
        for asked in ("no", "yes")
    ]
    assert faults[1] < faults[0] / 10


def test_what_the_environment_says_of_allocation_stands(monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not keep_freed_memory.__wrapped__()
