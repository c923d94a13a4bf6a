"""Write docs/options.md and the tables of options in docs/losses.md anew, from annotated arguments and docstrings."""

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from aadml.configuration.catalog import SECTIONS, listing, options
from aadml.feature_extraction.ground.options import Option, as_yaml, schema
from aadml.losses import LOSSES

DOCS = Path(__file__).parents[1] / "docs"
LOSS_PAGE, OPTION_PAGE = DOCS / "losses.md", DOCS / "options.md"
HEAD = "| option | default | possible | what it is, and where the default comes from |\n|---|---|---|---|\n"
KINDS = {
    "sections": "Sections of every config",
    "proxies": "Proxies",
    "selections": "Selections",
    "label-losses": "Label losses",
    "readouts": "Read-outs",
    "methods": "Methods",
    "extractors": "Extractors",
}
"""What docs/options.md covers, in its order; the losses have a page of their own."""
OPENING = """# Options

Every key of a config, as the code declares it: `aadml list sections training` or `aadml list methods dscmr` print the
same in a terminal. A key is set in a YAML file, by `--set training.epochs=20`, or as a column of `aadml ablate --over`;
options of extractors by `aadml extract --set audio.KEY=VALUE`. The losses have [a page of their own](losses.md).
This page is written by `python scripts/option_tables.py`.
"""


def table(found: Iterable[Option]) -> str:
    """Lay out options as a Markdown table."""
    rows = []
    for option in found:
        sentence = (option.sentence[:1].upper() + option.sentence[1:]).replace("|", "\\|")
        tried = f"; a search tries {', '.join(map(as_yaml, option.tuning))}" if option.tuning else ""
        possible = f"{option.possible}{option.company}{tried}"
        rows.append(f"| `{option.name}` | `{option.written_default}` | {possible} | {sentence} |\n")
    return HEAD + "".join(rows)


def with_tables(page: str) -> str:
    """Return the page of the losses with the table of every loss as the code has it."""
    for name, entry in LOSSES.items():
        section = re.search(rf"^### {re.escape(name)}\n.*?(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        if section is None:
            raise SystemExit(f"{LOSS_PAGE}: has no section for {name}; write one, with its formula and its source")
        rows = table(schema(entry).values())
        page = page.replace(
            section[0], re.sub(r"^\| option \|.*?\n(?=\n)", lambda _, t=rows: t, section[0], flags=re.M | re.S)
        )
    return page


def option_page() -> str:
    """Write the page of all options but those of the losses."""
    parts = [OPENING]
    for kind, title in KINDS.items():
        parts.append(f"\n## {title}\n")
        for entry in listing(kind):
            found = options(kind, entry.name)
            rows = table(found) if found else "No options.\n"
            places = SECTIONS[entry.name] if kind == "sections" else (entry.place,)
            declared = ", ".join(f"`{place}`" for place in places)
            parts.append(f"\n### {entry.name}\n\n{entry.description} Declared by {declared}.\n\n{rows}")
    return "".join(parts)


def example(entry: Callable[..., object]) -> str:
    """Give the example of an entry's docstring, without its prompts."""
    lines = (inspect.getdoc(entry) or "").splitlines()
    return "\n".join(line.strip()[4:] for line in lines if line.strip().startswith(">>>"))


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(f"{__doc__}\nIt takes no arguments; {' '.join(sys.argv[1:])} given.")
    LOSS_PAGE.write_text(with_tables(LOSS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    OPTION_PAGE.write_text(option_page(), encoding="utf-8")
