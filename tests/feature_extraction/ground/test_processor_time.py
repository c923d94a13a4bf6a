import signal
import subprocess
import sys

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.processor_time import limit_processor_time, reached_limit, require_seconds

SPIN = """
from aadml.feature_extraction.ground.processor_time import limit_processor_time
limit_processor_time(0.2)
{lift}
import time
while time.process_time() < 1.0:
    pass
"""


def code(lift):
    return subprocess.run([sys.executable, "-c", SPIN.format(lift=lift)], check=False).returncode


def test_a_process_ends_at_its_limit_and_runs_on_once_the_limit_is_removed():
    assert reached_limit(code(""))
    assert code("limit_processor_time(0)") == 0
    assert not reached_limit(0)
    assert not reached_limit(None)
    assert not any(reached_limit(code) for code in (-signal.SIGPROF - 1, -signal.SIGKILL, signal.SIGPROF))


def test_a_limit_sets_the_timer_of_the_process(monkeypatch):
    calls = []
    monkeypatch.setattr(signal, "signal", lambda *call: calls.append(call))
    monkeypatch.setattr(signal, "setitimer", lambda *call: calls.append(call))
    limit_processor_time(2.5)
    assert calls == [(signal.SIGPROF, signal.SIG_DFL), (signal.ITIMER_PROF, 2.5)]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e308])
def test_a_limit_that_no_clock_can_hold_is_refused(seconds):
    require_seconds("limit", 1e6)
    with pytest.raises(InputError, match=r"^limit is .* s; pass a number above zero, and at most 1,000,000 s$"):
        require_seconds("limit", seconds)
