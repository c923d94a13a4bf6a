"""A seeded sample of `scripts/soak/generated_calls.py`: no traceback, and nothing left behind."""

import pytest
from generated_calls import Generator

LINES, CALLS, SEED = 60, 120, 1
"""Of the sample."""


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    generator = Generator(tmp_path_factory.mktemp("generated"), SEED, LINES, limit=4.0)
    return [generator.run(number) for number in range(LINES + CALLS)]


def test_no_entry_ends_in_a_traceback_or_leaves_something_behind(entries):
    assert not [(entry.text, entry.outcome, entry.detail, entry.left) for entry in entries if entry.failed]


def test_many_entries_do_their_work_and_many_are_refused(entries):
    outcomes = [entry.outcome for entry in entries]
    assert sum(outcome in ("0", "1") for outcome in outcomes) > LINES / 4
    assert outcomes.count("2") > LINES / 4
    assert outcomes.count("returned") > CALLS / 4
    assert outcomes.count("InputError") > CALLS / 4
