"""pytest plugin for `trial.py`: runs only the chosen tests, in a given order, each with a separate time limit."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

CHOSEN: dict[str, float] = json.loads(Path(os.environ["AADML_CHOSEN"]).read_text(encoding="utf-8"))
"""Test -> limit in seconds of processor time, in order."""
BUSY = 5.0
"""Wall-clock limit divided by the limit in processor time; other processes use the processor too."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep only the chosen tests, in their order."""
    places = {test: place for place, test in enumerate(CHOSEN)}
    items[:] = sorted((one for one in items if one.nodeid in places), key=lambda one: places[one.nodeid])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process when a test takes too long."""
    signal.setitimer(signal.ITIMER_PROF, CHOSEN[item.nodeid])
    signal.setitimer(signal.ITIMER_REAL, BUSY * CHOSEN[item.nodeid])
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
