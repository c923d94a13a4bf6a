"""Write docs/options.md and the generated parts of docs/losses.md and docs/guide.md."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

from aadml.cli import descriptions
from aadml.configuration.catalog import SECTIONS, listing, options
from aadml.feature_extraction.ground.options import Option, as_yaml, schema
from aadml.losses import LOSSES
from aadml.objective.recipes import RECIPES

DOCS = Path(__file__).parents[1] / "docs"
GUIDE, LOSS_PAGE, OPTION_PAGE = DOCS / "guide.md", DOCS / "losses.md", DOCS / "options.md"
PYTHON = {"demo": "", "train": "fit", "search": "Index", "list": ""}
"""Names of commands in Python, if they differ."""
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
"""Kinds of entries in docs/options.md, in order; the losses have a separate page."""
OPENING = """# Options

Every key of a config, as the code declares it: `aadml list sections training` or `aadml list methods dscmr` print the
same in a terminal. A key is set in a YAML file, by `--set training.epochs=20`, or as a column of `aadml ablate --over`;
options of extractors by `aadml extract --set audio.KEY=VALUE`. The losses have [a page of their own](losses.md).
This page is written by `python scripts/option_tables.py`.
"""


def table(entries: Iterable[Option]) -> str:
    """Return a Markdown table of options."""
    rows = []
    for option in entries:
        sentence = (option.sentence[:1].upper() + option.sentence[1:]).replace("|", "\\|").replace("][", "]\\[")
        tried = f"; a search tries {', '.join(map(as_yaml, option.tuning))}" if option.tuning else ""
        possible = f"{option.possible}{option.company}{tried}".replace("][", "]\\[")  # else a link
        rows.append(f"| `{option.name}` | `{option.written_default}` | {possible} | {sentence} |\n")
    return HEAD + "".join(rows)


def loss_section(name: str) -> str:
    """Return the section of a loss: its docstring as Markdown, a table of its options, its example."""
    summary, *paragraphs = re.split(r"\n\s*\n", inspect.getdoc(LOSSES[name]) or "")
    body = "\n\n".join(as_markdown(text) for text in paragraphs if not text.startswith(("Args:", "Example:")))
    code = f"```python\n{example(LOSSES[name])}\n```\n"
    return f"### {name}\n\n{summary}\n\n{body}\n\n{table(schema(LOSSES[name]).values())}\n{code}"


def as_markdown(paragraph: str) -> str:
    """Return a paragraph of a docstring as Markdown: formulas as code, Returns and Raises in one line each."""
    if paragraph.startswith("    "):
        return f"```text\n{textwrap.dedent(paragraph)}\n```"
    lines = re.split(r"\n(?=    )", paragraph, maxsplit=1)
    if paragraph.startswith(("Returns:", "Raises:")):
        return f"**{lines[0].removesuffix(':')}**: {' '.join(lines[1].split())}"
    return "\n".join([lines[0], f"\n```text\n{textwrap.dedent(lines[1])}\n```"]) if lines[1:] else paragraph


def recipe_table() -> str:
    """Return the table of the recipes."""
    rows = ["| recipe | loss section | selection | directions | what it is |\n|---|---|---|---|---|\n"]
    for name, recipe in RECIPES.items():
        loss, selection = (
            ", ".join(f"{key}={setting}" for key, setting in section.items()) if section else "as configured"
            for section in (recipe.loss, recipe.selection)
        )
        directions = ", ".join(recipe.directions or ["as configured"])
        rows.append(f"| `{name}` | {loss} | {selection} | {directions} | {recipe.description} |\n")
    return "".join(rows)


def command_table() -> str:
    """Return the table of the commands and the Python functions that do the same."""
    rows = ["| command | effect | Python |\n| --- | --- | --- |\n"]
    for name, effect in descriptions().items():
        function = PYTHON.get(name, name.replace("-", "_"))
        rows.append(f"| `{name}` | {effect} | {f'`aadml.{function}`' if function else ''} |\n")
    return "".join(rows)


def with_generated_parts(page: str) -> str:
    """Return a page with its generated parts replaced by the current output of the code."""
    makers = {
        "losses": lambda: "\n".join(map(loss_section, LOSSES)),
        "recipes": recipe_table,
        "commands": command_table,
    }
    for name in re.findall(r"<!-- generated: (\S+) -->", page):
        text = makers[name]()
        begin, end = f"<!-- generated: {name} -->\n", f"\n<!-- end: {name} -->"
        before, _, rest = page.partition(begin)
        _, marker, after = rest.partition(end)
        if not marker:
            raise SystemExit(f"{begin.strip()} has no end; add {end.strip()}")
        page = f"{before}{begin}\n{text}{end}{after}"
    return page


def option_page() -> str:
    """Return the page of all options except those of the losses."""
    parts = [OPENING]
    for kind, title in KINDS.items():
        parts.append(f"\n## {title}\n")
        for entry in listing(kind):
            entries = options(kind, entry.name)
            rows = table(entries) if entries else "No options.\n"
            places = SECTIONS[entry.name] if kind == "sections" else (entry.place,)
            declared = ", ".join(f"`{place}`" for place in places)
            parts.append(f"\n### {entry.name}\n\n{entry.description} Declared by {declared}.\n\n{rows}")
    return "".join(parts)


def example(entry: Callable[..., object]) -> str:
    """Return the example of an entry's docstring, without its prompts."""
    lines = (inspect.getdoc(entry) or "").splitlines()
    return "\n".join(line.strip()[4:] for line in lines if line.strip().startswith(">>>"))


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(f"{__doc__}\nIt takes no arguments; {' '.join(sys.argv[1:])} given.")
    for path in (LOSS_PAGE, GUIDE):
        path.write_text(with_generated_parts(path.read_text(encoding="utf-8")), encoding="utf-8")
    OPTION_PAGE.write_text(option_page(), encoding="utf-8")
