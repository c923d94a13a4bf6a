"""A seeded sample of `scripts/soak/generated_calls.py`: no traceback, and nothing left behind."""

import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from generated_calls import ENTRY, ROOT, Generator, kind_of, tracebacks

import aadml

LINES, CALLS, SEED = 60, 120, 1
"""Of the sample."""


def run_all(folder):
    generator = Generator(folder, SEED, LINES, limit=4.0)
    return [generator.run(number) for number in range(LINES + CALLS)]


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """Entries of a process of their own: servers and interrupted calls change streams and loggers of their process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run_all, tmp_path_factory.mktemp("generated")).result()


@pytest.mark.slow
def test_no_entry_ends_in_a_traceback_or_leaves_something_behind(entries):
    assert not [(entry.text, entry.outcome, entry.detail, entry.left) for entry in entries if entry.failed]


@pytest.mark.slow
def test_many_entries_do_their_work_and_many_are_refused(entries):
    outcomes = [entry.outcome for entry in entries]
    assert sum(outcome in ("0", "1") for outcome in outcomes) > LINES / 4
    assert outcomes.count("2") > LINES / 4
    assert outcomes.count("returned") > CALLS / 4
    assert outcomes.count("InputError") > CALLS / 4


def _kinds(call, late=False, **names):
    """Return the kinds of the traceback of an expression."""
    try:
        eval(compile(call, ENTRY, "eval"), {"aadml": aadml, **names})
    except BaseException:
        return [kind_of(block, late) for block in tracebacks(traceback.format_exc())]
    return []


@pytest.mark.parametrize(
    "call",
    [
        "aadml.Index.build('x.h5', 'x.index', unknown=1)",
        "aadml.fit('x.h5', unknown=1)",
        "aadml.Index('x.index', unknown=1)",
        "aadml.Index()",
        "repr(aadml.Index('x.index', unknown=1))",
    ],
)
def test_wrong_arguments_are_not_a_defect(call):
    assert _kinds(call) == ["TypeError of the signature"]


def test_an_error_of_the_users_function_is_not_a_defect(tmp_path):
    call = "aadml.sample_data(folder, clips=1, seconds=0.5, workers=1, progress=lambda *_: 1 / 0)"
    assert _kinds(call, folder=tmp_path / "clips") == ["error of the user's function"]


@pytest.mark.parametrize("error", [TypeError("f() got an unexpected keyword argument 'k'"), ZeroDivisionError()])
def test_an_error_inside_of_aadml_is_a_defect(error, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("aadml.runs.data.open_data", fail)
    assert _kinds("aadml.read('synthetic:ave')") == ["traceback"]


def test_an_interruption_is_a_defect_unless_it_is_that_of_the_time_limit():
    block = 'Traceback (most recent call last):\n  File "/x/aadml/a.py", line 1, in f\n    g()\nKeyboardInterrupt\n'
    assert [kind_of(each, True) for each in tracebacks(block)] == ["time limit"]
    assert [kind_of(each, False) for each in tracebacks(block)] == ["traceback"]
    block = f'Traceback (most recent call last):\n  File "{ROOT}/aadml/a.py", line 1, in f\n    g()\nValueError: 1\n'
    assert [kind_of(each, True) for each in tracebacks(block)] == ["traceback"]
