"""Mutants of a room: one small change of one file each, by the operators of cosmic-ray and one of our own."""

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
        path: of the file, relative to the root of the tree.
        line: where the change begins, from 1.
        operator: what was changed, by name.
        before: the text of the file as it is.
        after: its text with the change.
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
        """Return the changed lines before and after, stripped: what the change is, wherever the lines stand."""
        lines = self.diff().splitlines()[3:]
        sides = ([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
        before, after = ("\n".join(side) for side in sides)
        return before, after


Positions = Iterator[tuple[tuple[int, int], tuple[int, int]]]


class DeleteCall(Operator):
    """Replaces a statement that is a call alone, whose result nobody takes, by `pass`."""

    def mutation_positions(self, node: tree.PythonBaseNode) -> Positions:
        """Yield where such a statement begins and ends."""
        if node.type == "simple_stmt" and _is_call(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: tree.PythonBaseNode, index: int) -> tree.PythonBaseNode:
        """Put `pass` in the place of the call."""
        call = node.children[0]
        node.children[0] = tree.Keyword("pass", call.start_pos, call.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return one change."""
        return (Example("f()\n", "pass\n"),)


class DeleteTranspose(Operator):
    """Leaves out `.T`."""

    def mutation_positions(self, node: tree.PythonBaseNode) -> Positions:
        """Yield where the two characters begin and end."""
        if node.type == "trailer" and node.get_code().strip() == ".T":
            yield node.start_pos, node.end_pos

    def mutate(self, node: tree.PythonBaseNode, index: int) -> None:
        """Leave the node out."""

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return one change."""
        return (Example("a.T @ b\n", "a @ b\n"),)


def _is_call(node: tree.PythonBaseNode) -> bool:
    last = node.children[-1] if node.type == "atom_expr" else None
    return last is not None and last.type == "trailer" and last.children[0].value == "("


# what may stand for what: across these groups a change would only raise a TypeError, or be none
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
    """Return all operators that need no arguments and put like in the place of like, by name."""
    theirs = {name.partition("/")[2]: get_operator(name) for name in operator_names()}
    found = {name: kind() for name, kind in theirs.items() if not kind.arguments() and _is_alike(name)}
    return found | {"DeleteCall": DeleteCall(), "DeleteTranspose": DeleteTranspose()}


def _is_alike(name: str) -> bool:
    _, *terms = name.split("_")
    return name != "NoOp" and (not terms or any(set(terms) <= group for group in ALIKE))


def sample(root: Path, files: Sequence[Path], count: int, seed: int) -> list[Mutant]:
    """Draw mutants: a place of the room each, evenly, then one of the changes that are possible there.

    A sum can be changed into eleven other things, a number into two; drawn evenly over changes, nearly all mutants
    would be of sums. What no longer compiles, or changes an annotation or a `strict` alone, is drawn anew.

    Args:
        root: of the tree.
        files: of the room, relative to the root.
        count: how many; fewer if the room has fewer places.
        seed: same tree, same seed: same mutants.
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
    """List every place of a file: its line and the changes possible there, each (operator, occurrence)."""
    text = file.read_text(encoding="utf-8")
    lines, nodes = [*text.splitlines(), ""], list(ast_nodes(get_ast(text)))
    changes: dict[tuple[str, tuple[int, int]], list[tuple[str, int]]] = defaultdict(list)
    for name, operator in possible.items():
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            rest = lines[end[0] - 1][end[1] :]
            if not rest.startswith(",") and not _orders_strings(name, rest):  # `*,` among arguments is no product
                changes[name.partition("_")[0], start].append((name, occurrence))
    return [(path, start[0], options) for (_, start), options in sorted(changes.items())]


def _orders_strings(name: str, rest: str) -> bool:
    """Say whether a change would put strings in an order (`form > "triplet"`), which nobody means."""
    return (
        name.startswith("ReplaceComparison")
        and rest.lstrip()[:1] in "\"'"
        and set(name.split("_")[1:]) != {"Eq", "NotEq"}
    )


def _same_program(before: str, after: str) -> bool | None:
    """Say whether two texts are the same program but for what a right one never asks; None if the second is none."""
    try:
        return _what_counts(before) == _what_counts(after)
    except SyntaxError:
        return None


def _what_counts(text: str) -> str:
    """Dump a program without annotations, and without `strict`, which asserts that two sides are equally long."""
    program = ast.parse(text)
    for node in ast.walk(program):
        if isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None and not isinstance(node, ast.AnnAssign):
                setattr(node, name, None)
    return ast.dump(program)
