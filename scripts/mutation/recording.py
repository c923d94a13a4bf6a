"""pytest plugin for `reach.py`: records the lines that each test runs, its duration, and whether it passes."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import reach
from coverage import Coverage, CoverageData


class Recording:
    """Gives every test, and every fixture that tests share, a separate context in the coverage data.

    Args:
        folder: folder into which the reach of each test file is written at the end.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.context = ""
        self.users: defaultdict[str, set[str]] = defaultdict(set)  # shared fixture -> the tests that have it
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.coverage = Coverage(data_file=None, source=[str(Path.cwd())], omit=["*/tests/*"], config_file=False)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure one test."""
        for fixture in shared_fixtures(item):
            self.users[_name(fixture)].add(item.nodeid)
        before = self._switch(item.nodeid)
        begun = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.monotonic() - begun, 3)
            self._switch(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[object]:
        """Measure a fixture; a shared fixture is set up within its first test, and its lines count for every test."""
        before = self._switch(self.context if fixturedef.scope == "function" else _name(fixturedef))
        try:
            return (yield)
        finally:
            self._switch(before)

    def _switch(self, context: str) -> str:
        before, self.context = self.context, context
        self.coverage.switch_context(context)
        return before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a failure."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the measurements, one file for each test file."""
        self.coverage.stop()
        code = dict(lines_by_tests(self.coverage.get_data(), self.users))
        for test_file in {test.partition("::")[0] for test in self.seconds}:
            seconds = {test: seconds for test, seconds in self.seconds.items() if test.startswith(f"{test_file}::")}
            failed = sorted(set(self.failed) & set(seconds))
            functions, lines = reach_of(code, list(seconds))
            kept = reach.Reach(reach.digest(Path(test_file)), seconds, failed, functions, lines)
            reach.write(self.folder, test_file, kept)


def shared_fixtures(item: pytest.Item) -> Iterator[pytest.FixtureDef[object]]:
    """Yield the fixtures of a test that are shared with other tests."""
    found = getattr(item, "_fixtureinfo", None)
    for fixtures in found.name2fixturedefs.values() if found else []:
        yield from (one for one in fixtures if one.scope != "function")


def _name(fixture: pytest.FixtureDef[object]) -> str:
    return f"{fixture.baseid}::fixture {fixture.argname}"


Together = dict[frozenset[str], list[int]]
Groups = dict[str, list[tuple[list[int], tuple[int, ...]]]]


def lines_by_tests(data: CoverageData, users: Mapping[str, set[str]]) -> Iterator[tuple[Path, Together]]:
    """Yield each measured file with a mapping: tests -> lines that exactly these tests run, also in fixtures."""
    for file in (file for file in data.measured_files() if file.endswith(".py")):  # templates are measured too
        by_contexts: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for line, contexts in data.contexts_by_lineno(file).items():
            by_contexts[tuple(sorted(filter(None, contexts)))].append(line)
        together: Together = defaultdict(list)
        for contexts, lines in by_contexts.items():
            together[frozenset().union(*(users.get(one, {one}) for one in contexts))] += lines
        yield Path(file), together


def reach_of(code: Mapping[Path, Together], tests: Sequence[str]) -> tuple[dict[str, dict[str, list[str]]], Groups]:
    """Convert measured lines to the reach of the tests of one file: `functions` and `lines` of a `Reach`."""
    functions: dict[str, dict[str, list[str]]] = {}
    groups: Groups = {}
    places = {test: place for place, test in enumerate(tests)}
    for file, together in code.items():
        by_tests = [(lines, found) for theirs, lines in together.items() if (found := theirs & places.keys())]
        if by_tests:
            text = file.read_text(encoding="utf-8")
            names, by_name = reach.names_of_lines(text), defaultdict(set)
            for lines, found in by_tests:
                for name in {names[line] for line in lines} - {""}:
                    by_name[name] |= found
            functions[str(file.relative_to(Path.cwd()))] = {name: sorted(found) for name, found in by_name.items()}
            groups[reach.digest_of(text)] = [(lines, tuple(places[one] for one in found)) for lines, found in by_tests]
    return functions, groups


def pytest_configure(config: pytest.Config) -> None:
    """Start measuring before any code of the tree is imported."""
    config.pluginmanager.register(Recording(Path(os.environ["AADML_REACH"])))
