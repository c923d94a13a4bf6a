"""Mutants of a room: one small change of one file each, by the operators of cosmic-ray and two further operators."""

import ast
import difflib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import parso.python.tree as tree
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator, operator_names


@dataclass(frozen=True)
class Mutant:
    """One changed file.

    Attributes:
        path: path of the file, relative to the root of the tree.
        line: first changed line, from 1.
        operator: name of the kind of change.
        before: text of the file.
        after: text with the change.
    """

    path: Path
    line: int
    operator: str
    before: str
    after: str

    def diff(self) -> str:
        """Return the change as a unified diff with one line of context."""
        texts = (self.before.splitlines(), self.after.splitlines())
        return "\n".join(difflib.unified_diff(*texts, str(self.path), str(self.path), n=1, lineterm=""))

    def change(self) -> tuple[str, str]:
        """Return the changed lines before and after, stripped, which identify the change without line numbers."""
        lines = self.diff().splitlines()[3:]
        sides = ([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
        before, after = ("\n".join(side) for side in sides)
        return before, after


Positions = Iterator[tuple[tuple[int, int], tuple[int, int]]]


class DeleteCall(Operator):
    """Replaces a statement that is only a call, whose result is not used, by `pass`."""

    def mutation_positions(self, node: tree.PythonBaseNode) -> Positions:
        """Yield the start and the end of the statement."""
        if node.type == "simple_stmt" and _is_call(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: tree.PythonBaseNode, index: int) -> tree.PythonBaseNode:
        """Return `pass`, which replaces the call."""
        call = node.children[0]
        node.children[0] = tree.Keyword("pass", call.start_pos, call.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return one example."""
        return (Example("f()\n", "pass\n"),)


class DeleteTranspose(Operator):
    """Removes `.T`."""

    def mutation_positions(self, node: tree.PythonBaseNode) -> Positions:
        """Yield the start and the end of the two characters."""
        if node.type == "trailer" and node.get_code().strip() == ".T":
            yield node.start_pos, node.end_pos

    def mutate(self, node: tree.PythonBaseNode, index: int) -> None:
        """Remove the node."""

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return one example."""
        return (Example("a.T @ b\n", "a @ b\n"),)


def _is_call(node: tree.PythonBaseNode) -> bool:
    last = node.children[-1] if node.type == "atom_expr" else None
    return last is not None and last.type == "trailer" and last.children[0].value == "("


# operators that may replace each other: a change across groups would only raise a TypeError, or have no effect
ALIKE = (
    {"Add", "Sub", "Mul", "Div", "FloorDiv", "Pow"},
    {"BitOr", "BitAnd", "BitXor"},
    {"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"},
    {"Is", "IsNot"},
    {"Delete", "USub"},
    {"Delete", "Invert"},
    {"Delete", "Not"},
)


def operators() -> Mapping[str, Operator]:
    """Return, by name, all operators that need no arguments and replace code by code of the same kind."""
    theirs = {name.partition("/")[2]: get_operator(name) for name in operator_names()}
    found = {name: kind() for name, kind in theirs.items() if not kind.arguments() and _is_alike(name)}
    return found | {"DeleteCall": DeleteCall(), "DeleteTranspose": DeleteTranspose()}


def _is_alike(name: str) -> bool:
    _, *terms = name.split("_")
    return name != "NoOp" and (not terms or any(set(terms) <= group for group in ALIKE))


def sample(root: Path, files: Sequence[Path], count: int, seed: int) -> list[Mutant]:
    """Draw mutants: for each mutant a position of the room, uniformly, then one of the possible changes there.

    A sum has eleven possible changes, a number two; if changes were drawn uniformly, nearly all mutants would be of
    sums. A change that does not compile, or that affects only an annotation or a `strict`, is drawn again.

    Args:
        root: root of the tree.
        files: files of the room, relative to the root.
        count: number of mutants; fewer if the room has fewer positions.
        seed: seed of the draw; equal trees and seeds give equal mutants.
    """
    possible = operators()
    places = [place for path in files for place in _places(root / path, path, possible)]
    drawn = random.Random(seed)
    drawn.shuffle(places)
    mutants: list[Mutant] = []
    for path, line, changes in places:
        if len(mutants) == count:
            break
        name, occurrence = drawn.choice(changes)
        before = (root / path).read_text(encoding="utf-8")
        after = mutate_code(before, possible[name], occurrence)
        if after is not None and _same_program(before, after) is False:
            mutants.append(Mutant(path, line, name, before, after))
    return mutants


Place = tuple[Path, int, list[tuple[str, int]]]


def _places(file: Path, path: Path, possible: Mapping[str, Operator]) -> list[Place]:
    """Return every position of a file: its line and the possible changes, each as (operator, occurrence)."""
    text = file.read_text(encoding="utf-8")
    lines, nodes = [*text.splitlines(), ""], list(ast_nodes(get_ast(text)))
    changes: dict[tuple[str, tuple[int, int]], list[tuple[str, int]]] = defaultdict(list)
    for name, operator in possible.items():
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            rest = lines[end[0] - 1][end[1] :]
            if not rest.startswith(",") and not _orders_strings(name, rest):  # `*,` among arguments is not a product
                changes[name.partition("_")[0], start].append((name, occurrence))
    return [(path, start[0], options) for (_, start), options in sorted(changes.items())]


def _orders_strings(name: str, rest: str) -> bool:
    """Return whether a change would compare strings by order (`form > "triplet"`), which is never intended."""
    return (
        name.startswith("ReplaceComparison")
        and rest.lstrip()[:1] in "\"'"
        and set(name.split("_")[1:]) != {"Eq", "NotEq"}
    )


def _same_program(before: str, after: str) -> bool | None:
    """Return whether two programs are equal apart from annotations and `strict`; None if the second is invalid."""
    try:
        return _what_counts(before) == _what_counts(after)
    except SyntaxError:
        return None


def _what_counts(text: str) -> str:
    """Return the AST of a program without annotations and without `strict`, which asserts equal lengths, as text."""
    program = ast.parse(text)
    for node in ast.walk(program):
        if isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None and not isinstance(node, ast.AnnAssign):
                setattr(node, name, None)
    return ast.dump(program)
