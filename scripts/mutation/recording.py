"""A plugin of pytest for `reach.py`: which functions each test runs, how long it takes, and whether it passes."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import reach
from coverage import Coverage, CoverageData


class Recording:
    """Gives every test a context of its own among the measured lines.

    Args:
        folder: where the reach of each test file is written at the end.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.coverage = Coverage(data_file=None, source=[str(Path.cwd())], omit=["*/tests/*"], config_file=False)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure one test."""
        self.coverage.switch_context(item.nodeid)
        begun = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.monotonic() - begun, 3)
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what was measured, a file for each test file."""
        self.coverage.stop()
        functions = functions_by_test_file(self.coverage.get_data(), Path.cwd())
        for test_file in {test.partition("::")[0] for test in self.seconds}:
            of_file = {test: seconds for test, seconds in self.seconds.items() if test.startswith(f"{test_file}::")}
            failed = sorted(set(self.failed) & set(of_file))
            found = reach.Reach(reach.digest(Path(test_file)), of_file, failed, functions[test_file])
            reach.write(self.folder, test_file, found)


Functions = dict[str, dict[str, list[str]]]


def functions_by_test_file(data: CoverageData, root: Path) -> defaultdict[str, Functions]:
    """Turn measured lines into test file -> path of the code -> function -> tests."""
    found: defaultdict[str, Functions] = defaultdict(lambda: defaultdict(dict))
    for file in data.measured_files():
        names = reach.names_of_lines(Path(file).read_text(encoding="utf-8"))
        path = str(Path(file).relative_to(root))
        tests: dict[str, set[str]] = defaultdict(set)
        for line, contexts in data.contexts_by_lineno(file).items():
            tests[names[line]] |= set(contexts) - {""}
        for name in filter(None, tests):
            for test in sorted(tests[name]):
                found[test.partition("::")[0]][path].setdefault(name, []).append(test)
    return found


def pytest_configure(config: pytest.Config) -> None:
    """Begin to measure, before any code of the tree is imported."""
    config.pluginmanager.register(Recording(Path(os.environ["AADML_REACH"])))
