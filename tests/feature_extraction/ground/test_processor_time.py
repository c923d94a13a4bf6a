import subprocess
import sys

from aadml.feature_extraction.ground.processor_time import reached_limit

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
