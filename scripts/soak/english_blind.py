"""Blind ratings: texts of the product mixed with texts of well-known packages, and the counts of the ratings.

    python scripts/soak/english_blind.py draw FOLDER --seed 1      # writes FOLDER/texts.md for readers, FOLDER/key.json
    python scripts/soak/english_blind.py count FOLDER              # counts FOLDER/rating_*.csv

A reader receives only `texts.md` and the ten rules, and writes a CSV file with the columns text, failed, clear, rule
and why: one row per text, with 0 or 1 in `failed` and `clear`. Each text stands beside its code. The other packages are
those of OTHERS, installed in the environment; their docstrings have at most LONGEST lines.
"""

import argparse
import ast
import csv
import json
import random
import textwrap
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from english import DEFINITIONS, ROOT, messages

OURS = "aadml"
OTHERS = ("sklearn", "click", "httpx2", "starlette", "networkx", "torch.nn", "torch.optim", "torch.distributions")
LONGEST = 12
CODE = 40
COUNTS = {"docstring": (100, 24), "message": (60, 16)}
"""Kind of text -> number of texts of the product, and of the other packages."""
Text = tuple[str, str]
"""A text, and the code around the text."""


def docstrings(tree: ast.Module, lines: list[str]) -> Iterator[Text]:
    """Yield every docstring with the code of its definition, or with the first lines of its module."""
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS) and (text := ast.get_docstring(node)):
            start = 0 if isinstance(node, ast.Module) else node.lineno - 1
            end = CODE if isinstance(node, ast.Module) else node.end_lineno or CODE
            yield text, "\n".join(lines[start : min(end, start + CODE + len(text.splitlines()))])


def spoken(tree: ast.Module, lines: list[str]) -> Iterator[Text]:
    """Yield the source of every message of the product with the lines around it."""
    for line, text in messages(tree):
        yield text, "\n".join(lines[max(0, line - 9) : line + 4])


def raised(tree: ast.Module, lines: list[str]) -> Iterator[Text]:
    """Yield the source of the message of every raised exception with the lines before it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            message = node.exc.args[0]
            words = [part.value for part in ast.walk(message) if isinstance(part, ast.Constant)]
            if sum(len(str(word).split()) for word in words) > 2:
                yield ast.unparse(message), "\n".join(lines[max(0, node.lineno - 9) : node.end_lineno])


def texts(folders: Iterable[Path], find: Callable[[ast.Module, list[str]], Iterator[Text]]) -> list[Text]:
    """Return the different texts of all modules that are not tests, sorted."""
    found: dict[str, str] = {}
    for path in sorted(path for folder in folders for path in folder.rglob("*.py") if "test" not in str(path.name)):
        source = path.read_text(encoding="utf-8", errors="replace")
        for text, code in find(ast.parse(source), source.splitlines()):
            found.setdefault(text, code)
    return sorted(found.items())


def draw(folder: Path, seed: int) -> None:
    """Write the texts in random order, and the key with their origins."""
    generator, key, parts = random.Random(seed), {}, []
    for kind, (of_product, of_others) in COUNTS.items():
        find, find_others = (docstrings, docstrings) if kind == "docstring" else (spoken, raised)
        product = texts((ROOT / "aadml", ROOT / "feature_extraction"), find)
        chosen = [(OURS, text) for text in generator.sample(product, of_product)]
        for package in OTHERS:
            spec = find_spec(package)
            assert spec is not None
            assert spec.submodule_search_locations
            others = texts([Path(spec.submodule_search_locations[0])], find_others)
            short = [text for text in others if len(text[0].splitlines()) <= LONGEST]
            chosen += [(package, text) for text in generator.sample(short, of_others // len(OTHERS))]
        generator.shuffle(chosen)
        for number, (origin, (text, code)) in enumerate(chosen, 1):
            name = f"{kind[0].upper()}{number}"
            key[name] = origin
            parts.append(f"## {name}\n\n{textwrap.indent(text, '    ')}\n\n```python\n{code}\n```\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.md").write_text("\n".join(parts), encoding="utf-8")
    (folder / "key.json").write_text(json.dumps(key), encoding="utf-8")


def count(folder: Path) -> None:
    """Print a row of Markdown for each reader: failed texts of the product and of the other packages."""
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    print("| reader | docstrings, failed (clear) | messages, failed (clear) | others' docstrings | others' messages |")
    print("| --- | --- | --- | --- | --- |")
    for path in sorted(folder.glob("rating_*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows = {row["text"]: row for row in csv.DictReader(file)}
        assert rows.keys() == key.keys(), path
        cells = []
        for is_ours in (True, False):
            for kind in "DM":
                own = [rows[name] for name in key if name[0] == kind and (key[name] == OURS) == is_ours]
                failed = [row for row in own if row["failed"] == "1"]
                cells.append(f"{len(failed)} ({sum(row['clear'] == '1' for row in failed)}) of {len(own)}")
        print(f"| {path.stem.removeprefix('rating_')} | {' | '.join(cells)} |")


def main() -> None:
    """Draw texts, or count ratings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["draw", "count"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.step == "draw":
        draw(chosen.folder, chosen.seed)
    else:
        count(chosen.folder)


if __name__ == "__main__":
    main()
