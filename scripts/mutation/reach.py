"""Reach of tests: for each function and line of the tree the tests that run it, measured once for each test file."""

import ast
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

MEASURED = ".mutation"
"""Folder of a tree that stores the measurements."""


@dataclass(frozen=True)
class Reach:
    """Reach of the tests of one file.

    Attributes:
        digest: checksum of the test file when it was measured.
        seconds: test -> duration.
        failed: tests that fail without a change, which cannot detect mutants.
        functions: path of the code -> name of a function -> the tests that run it.
        lines: checksum of a code file when it was measured -> groups of (lines, the tests that run each of them, as
            positions in `seconds`).
    """

    digest: str
    seconds: Mapping[str, float]
    failed: Sequence[str]
    functions: Mapping[str, Mapping[str, Sequence[str]]]
    lines: Mapping[str, Sequence[tuple[Sequence[int], Sequence[int]]]] = field(default_factory=dict)

    def tests_of_lines(self, code: str, lines: Collection[int]) -> set[str]:
        """Return the tests that run any of some lines of a code file with the checksum `code`."""
        names, groups = list(self.seconds), self.lines.get(code, ())
        return {names[test] for theirs, tests in groups if not set(lines).isdisjoint(theirs) for test in tests}


def digest(file: Path) -> str:
    """Return the checksum of a file."""
    return digest_of(file.read_text(encoding="utf-8"))


def digest_of(text: str) -> str:
    """Return the checksum of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def record_of(folder: Path, test_file: str) -> Path:
    """Return the path of the stored reach of a test file."""
    return folder / f"{test_file.replace('/', '.')}.json"


def write(folder: Path, test_file: str, reach: Reach) -> None:
    """Store the reach of a test file."""
    folder.mkdir(parents=True, exist_ok=True)
    record_of(folder, test_file).write_text(json.dumps(vars(reach)), encoding="utf-8")


def measured(root: Path, folder: Path, tests: Iterable[Path], run: Callable[[list[Path]], None]) -> dict[str, Reach]:
    """Read the reach of test files; new or changed files are measured first.

    Args:
        root: root of the tree.
        folder: folder of stored reach.
        tests: the test files, relative to the root.
        run: function that runs test files under the plugin `recording`.

    Returns:
        test file -> reach.
    """
    found: dict[str, Reach] = {}
    stale: dict[Path, list[Path]] = defaultdict(list)
    for path in tests:
        kept = _read(folder, str(path))
        if kept is None or kept.digest != digest(root / path):
            stale[path.parent].append(path)
        else:
            found[str(path)] = kept
    for together in stale.values():
        for path in together:
            record_of(folder, str(path)).unlink(missing_ok=True)
        run(together)
        for path in together:
            kept = _read(folder, str(path)) or Reach(digest(root / path), {}, [], {})  # all its tests are slow
            write(folder, str(path), kept)
            found[str(path)] = kept
    return found


def _read(folder: Path, test_file: str) -> Reach | None:
    path = record_of(folder, test_file)
    return Reach(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


@cache
def names_of_lines(text: str) -> list[str]:
    """Return the name of the innermost function of every line, "" outside of functions; line 1 is at index 1."""
    names = [""] * (text.count("\n") + 2)

    def visit(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.ClassDef):
                name = f"{outer}{child.name}."
            elif isinstance(child, ast.FunctionDef):
                name = f"{outer}{child.name}."
                begin = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                end = child.end_lineno or begin
                names[begin : end + 1] = [name.rstrip(".")] * (end + 1 - begin)
            visit(child, name)

    visit(ast.parse(text), "")
    return names


def is_signature(text: str, line: int) -> bool:
    """Return whether a line is in no function body: a default, a bound, a constant."""
    bodies = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return not any(one.body[0].lineno <= line <= (one.end_lineno or line) for one in bodies)


def lines_of_statement(text: str, line: int) -> range:
    """Return the lines of the statement at a line; only the lines of the head for an `if`, a loop or a `with`."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(text)):  # from outside to inside: the last fitting statement is the innermost
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            body = getattr(node, "body", None)
            begin = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
            end = max(begin, body[0].lineno - 1) if body else node.end_lineno or begin
            if begin <= line <= end:
                found = range(begin, end + 1)
    return found


def tests_reaching(path: str, text: str, line: int, found: Mapping[str, Reach]) -> dict[str, set[str]]:
    """Find the tests that run the statement at a line of a code file: test file -> tests.

    If no such test is known, or the file has changed since the measurement, the tests that run the function are
    returned. If there are none either (code outside of functions runs at import), all tests of the file or its folder
    are returned.
    """
    function, code, folder = names_of_lines(text)[line], digest_of(text), str(Path(path).parent)
    statement = () if not function or is_signature(text, line) else lines_of_statement(text, line)
    wanted: list[Callable[[str, str], bool]] = [
        lambda p, f: (p, f) == (path, function),
        lambda p, _: p == path,
        lambda p, _: str(Path(p).parent) == folder,
    ]
    ways: list[Callable[[Reach], set[str]]] = [
        lambda reach: reach.tests_of_lines(code, statement),
        *(partial(_tests_of_functions, fits=fits) for fits in wanted[0 if function else 1 :]),
    ]
    for way in ways:
        reaching = {test_file: way(reach) for test_file, reach in found.items()}
        if any(reaching.values()):
            return {test_file: tests for test_file, tests in reaching.items() if tests}
    return {}


def _tests_of_functions(reach: Reach, fits: Callable[[str, str], bool]) -> set[str]:
    return {
        test
        for path, functions in reach.functions.items()
        for name, tests in functions.items()
        if fits(path, name)
        for test in tests
    }
