"""The run folder under kills, refusals of the system, and any order of calls: what was committed is there."""

import errno
import tempfile
from pathlib import Path

import pytest
from faults import failing, in_child, killing, points
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from aadml.runs.manifest import LOG, MANIFEST, read_manifest
from aadml.runs.store import new_run, open_run
from tests.runs.planted import committed, own, plant


def train(folder):
    """A training in small: three epochs of log and state, then the model."""
    with new_run(folder) if not (folder / MANIFEST).exists() else open_run(folder) as store:
        if "config.yaml" not in store.manifest.files:
            store.commit({"config.yaml": b"c"})
        for epoch in range(len(read_manifest(folder).read_log().splitlines()), 3):
            store.append(b"%d\n" % epoch)
            state = store.manifest.numbered("state")
            files = {f"state-{store.next_number()}.safetensors": b"state %d" % epoch}
            store.commit(files, drop=[state] if state else [])
        state = store.manifest.numbered("state")
        store.commit({"model.json": b"model"}, drop=[state] if state else [], flush=True)


DONE = {"config.yaml": b"c", "model.json": b"model", LOG: b"0\n1\n2\n"}


@pytest.mark.slow
def test_a_kill_at_any_point_loses_nothing_that_was_committed(tmp_path):
    plant(tmp_path / "whole")
    found = points(tmp_path / "whole", lambda: train(tmp_path / "whole"))
    assert len(found) > 60
    for number in range(len(found)):
        place = tmp_path / str(number)
        plant(place)
        assert in_child(lambda place=place: train(place), killing(number), place).code == 77
        train(place)
        assert committed(place) == DONE, (number, found[number])
        assert own(place).keys() == {MANIFEST, *DONE}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(errno.ENOSPC, marks=pytest.mark.slow),
        pytest.param(errno.EROFS, marks=pytest.mark.soak),
        pytest.param(errno.EACCES, marks=pytest.mark.soak),
    ],
)
def test_what_the_system_refuses_at_any_point_is_one_line_and_loses_nothing_that_was_committed(tmp_path, code):
    plant(tmp_path / "whole")
    found = points(tmp_path / "whole", lambda: train(tmp_path / "whole"))
    refused = 0
    for number in range(len(found)):
        place = tmp_path / str(number)
        plant(place)
        ending = in_child(lambda place=place: train(place), failing(number, code), place)
        assert ending.code in (0, 2), ending.text
        assert len(ending.text.splitlines()) <= 1
        refused += ending.code == 2
        train(place) if not is_done(place) else None
        with open_run(place):
            pass
        assert committed(place) == DONE, (number, found[number])
        assert own(place).keys() == {MANIFEST, *DONE}
    assert refused > 0.8 * len(found)


def is_done(place):
    return (place / MANIFEST).exists() and "model.json" in read_manifest(place).files


class AnyOrder(RuleBasedStateMachine):
    """Whatever is done in whatever order, what a run holds is what was last committed."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp()) / "run"
        plant(self.folder)
        self.known, self.log, self.pending = {}, b"", b""
        self.entered = new_run(self.folder)
        self.store = self.entered.__enter__()

    @rule(line=st.binary(min_size=1, max_size=20))
    def append(self, line):
        self.store.append(line)
        self.pending += line

    @rule(data=st.binary(max_size=50), kind=st.sampled_from(["state", "best"]), flush=st.booleans())
    def commit_numbered(self, data, kind, flush):
        old = self.store.manifest.numbered(kind)
        name = f"{kind}-{self.store.next_number()}.safetensors"
        self.store.commit({name: data}, drop=[old] if old else [], flush=flush)
        self.known = {key: value for key, value in self.known.items() if key != old} | {name: data}
        self._committed()

    @rule(data=st.binary(max_size=50), name=st.sampled_from(["config.yaml", "evaluations/a.json"]))
    def commit_named(self, data, name):
        self.store.commit({name: data})
        self.known[name] = data
        self._committed()

    @rule(data=st.binary(min_size=1, max_size=50), number=st.integers(0, 40), kind=st.sampled_from(["state", "best"]))
    def killed_while_committing(self, data, number, kind):
        old = self.store.manifest.numbered(kind)
        files = {f"{kind}-{self.store.next_number()}.safetensors": data}
        work = lambda: self.store.commit(files, drop=[old] if old else [])  # noqa: E731
        in_child(work, killing(number), self.folder)
        found = committed(self.folder)
        after = {key: value for key, value in self.known.items() if key != old} | files
        if files.keys() & found.keys():
            self.known = after
            self._committed()
        self.reopened()

    @rule()
    def reopened(self):
        self.entered.__exit__(None, None, None)
        self.entered = open_run(self.folder)
        self.store = self.entered.__enter__()
        self.pending = b""

    @invariant()
    def what_was_committed_is_there(self):
        assert committed(self.folder) == self.known | {LOG: self.log}
        names = {name for name in own(self.folder) if name not in (MANIFEST, LOG)}
        assert names == self.known.keys()

    def teardown(self):
        self.entered.__exit__(None, None, None)

    def _committed(self):
        self.log, self.pending = self.log + self.pending, b""


def orders(count):
    return settings(max_examples=count, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
def test_a_few_orders():
    run_state_machine_as_test(AnyOrder, settings=orders(8))


@pytest.mark.slow
def test_many_orders():
    run_state_machine_as_test(AnyOrder, settings=orders(50))
