"""Write the tables of options in docs/losses.md anew, from the annotated arguments and docstrings of the losses."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path

from aadml.losses import LOSSES
from feature_extraction.ground.options import schema
from feature_extraction.ground.validation import as_yaml

PAGE = Path(__file__).parents[1] / "docs" / "losses.md"
HEAD = "| option | default | possible | what it is, and where the default comes from |\n|---|---|---|---|\n"


def table(entry: Callable[..., object]) -> str:
    """Lay out the options of an entry as a Markdown table."""
    rows = []
    for option in schema(entry).values():
        default = option.default if isinstance(option.default, str) else as_yaml(option.default)
        sentence = option.sentence[:1].upper() + option.sentence[1:]
        rows.append(f"| `{option.name}` | `{default}` | {option.possible} | {sentence} |\n")
    return HEAD + "".join(rows)


def with_tables(page: str) -> str:
    """Return the page with the table of every loss as the code has it."""
    for name, entry in LOSSES.items():
        section = re.search(rf"^### {re.escape(name)}\n.*?(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        if section is None:
            raise SystemExit(f"{PAGE}: has no section for {name}; write one, with its formula and its source")
        found = re.sub(r"^\| option \|.*?\n(?=\n)", lambda _, e=entry: table(e), section[0], flags=re.M | re.S)
        page = page.replace(section[0], found)
    return page


def example(entry: Callable[..., object]) -> str:
    """Give the example of an entry's docstring, without its prompts."""
    lines = (inspect.getdoc(entry) or "").splitlines()
    return "\n".join(line.strip()[4:] for line in lines if line.strip().startswith(">>>"))


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
