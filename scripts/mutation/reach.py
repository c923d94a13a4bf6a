"""What tests reach: for each function and line of the tree the tests that run it, measured once for each test file."""

import ast
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

MEASURED = ".mutation"
"""Folder of a tree that keeps what was measured."""


@dataclass(frozen=True)
class Reach:
    """What the tests of one file reach.

    Attributes:
        digest: of the test file when it was measured.
        seconds: test -> how long it takes.
        failed: tests that fail although nothing is changed; they can tell nothing.
        functions: path of the code -> name of a function -> the tests that run it.
        lines: digest of a code file when it was measured -> groups of (lines, the tests that run each of them; by
            their place in `seconds`).
    """

    digest: str
    seconds: Mapping[str, float]
    failed: Sequence[str]
    functions: Mapping[str, Mapping[str, Sequence[str]]]
    lines: Mapping[str, Sequence[tuple[Sequence[int], Sequence[int]]]] = field(default_factory=dict)

    def tests_of_lines(self, code: str, lines: Collection[int]) -> set[str]:
        """Name the tests that run any of some lines of a code file, given by its digest."""
        names, groups = list(self.seconds), self.lines.get(code, ())
        return {names[test] for theirs, tests in groups if not set(lines).isdisjoint(theirs) for test in tests}


def digest(file: Path) -> str:
    """Return what tells one state of a file from another."""
    return digest_of(file.read_text(encoding="utf-8"))


def digest_of(text: str) -> str:
    """Return what tells one text from another."""
    return hashlib.sha256(text.encode()).hexdigest()


def record_of(folder: Path, test_file: str) -> Path:
    """Return where the reach of a test file is kept."""
    return folder / f"{test_file.replace('/', '.')}.json"


def write(folder: Path, test_file: str, reach: Reach) -> None:
    """Keep the reach of a test file."""
    folder.mkdir(parents=True, exist_ok=True)
    record_of(folder, test_file).write_text(json.dumps(vars(reach)), encoding="utf-8")


def measured(root: Path, folder: Path, tests: Iterable[Path], run: Callable[[list[Path]], None]) -> dict[str, Reach]:
    """Read the reach of test files, after those that are new or have changed were measured.

    Args:
        root: of the tree.
        folder: where it is kept.
        tests: the test files, relative to the root.
        run: runs test files under the plugin `recording`.

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
    """Name the innermost function of every line, "" outside of all; line 1 is at 1."""
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
    """Say whether a line stands in no function's body: a default, a bound, a constant."""
    bodies = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return not any(one.body[0].lineno <= line <= (one.end_lineno or line) for one in bodies)


def lines_of_statement(text: str, line: int) -> range:
    """Return the lines of the statement at a line; of an `if`, a loop or a `with` those of its head alone."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(text)):  # from outside to inside: the last one that fits is the innermost
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            body = getattr(node, "body", None)
            begin = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
            end = max(begin, body[0].lineno - 1) if body else node.end_lineno or begin
            if begin <= line <= end:
                found = range(begin, end + 1)
    return found


def tests_reaching(path: str, text: str, line: int, found: Mapping[str, Reach]) -> dict[str, set[str]]:
    """Find the tests that run the statement at a line of a code file: test file -> tests.

    Where none is known to, or the file has changed since it was measured, those that run its function; where there are
    none either (what stands outside of functions runs while it is imported), those that run anything of the file, or of
    its folder.
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
