"""Random samples of the docstrings and messages of the product, which a reader rates by the rules of plain English."""

import argparse
import ast
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEAKERS = ("DamagedFileError", "InUseError", "InputError", "UntrustedCodeError", "UsageError", "echo", "note")
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring."""
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and source of every message of an error and every note to the user."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).split(".")[-1] in SPEAKERS:
            words = [one.value for part in node.args[:1] for one in ast.walk(part) if isinstance(one, ast.Constant)]
            if sum(len(str(word).split()) for word in words) > 2:
                yield node.lineno, ast.unparse(node.args[0])


def drawn(find: Callable[[ast.AST], Iterator[tuple[int, str]]], count: int, seed: int) -> list[str]:
    """Return a sample of the texts that `find` yields over all modules, each text once, as list items."""
    found: dict[str, str] = {}
    for path in sorted(path for room in ("aadml", "feature_extraction") for path in (ROOT / room).rglob("*.py")):
        for line, text in find(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(text, f"{path.relative_to(ROOT)}:{line}")
    chosen = random.Random(seed).sample(sorted(found.items(), key=lambda item: item[1]), count)
    return [f"{number}. `{place}`\n\n```\n{text}\n```\n" for number, (text, place) in enumerate(chosen, 1)]


def main() -> None:
    """Print the sample as Markdown, with seed and commit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--docstrings", type=int, default=100)
    parser.add_argument("--messages", type=int, default=60)
    chosen = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    print(f"Seed {chosen.seed}, commit {commit.strip()}.\n\n## Docstrings\n")
    print("\n".join(drawn(docstrings, chosen.docstrings, chosen.seed)))
    print("\n## Messages\n")
    print("\n".join(drawn(messages, chosen.messages, chosen.seed)))


if __name__ == "__main__":
    main()
