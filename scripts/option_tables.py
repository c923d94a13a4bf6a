"""Write docs/options.md, and the tables of options in docs/losses.md, anew from annotated arguments and docstrings."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from aadml.configuration.config import FIXED, TABLES, Common
from aadml.losses import LOSSES
from aadml.methods import METHODS
from aadml.methods.networks import NetworkOptions
from feature_extraction.backbones import EXTRACTORS
from feature_extraction.ground.options import schema
from feature_extraction.ground.validation import as_yaml

PAGE = Path(__file__).parents[1] / "docs" / "losses.md"
OPTIONS = PAGE.with_name("options.md")
HEAD = "| option | default | possible | what it is, and where the default comes from |\n|---|---|---|---|\n"
OPTIONS_HEAD = """# Options

Every section of a config, and every name of a table, with what it takes; those of the losses stand in
[losses.md](losses.md). `--set SECTION.OPTION=VALUE` sets one. `python scripts/option_tables.py` writes this page.
"""


def table(entry: Callable[..., object]) -> str:
    """Lay out the options of an entry as a Markdown table."""
    rows = []
    for option in schema(entry).values():
        default = option.default if isinstance(option.default, str) else as_yaml(option.default)
        sentence = option.sentence[:1].upper() + option.sentence[1:]
        tried = f"; a search tries {', '.join(map(as_yaml, option.tuning))}" if option.tuning else ""
        rows.append(f"| `{option.name}` | `{default}` | {option.possible}{tried} | {sentence} |\n")
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


def sections() -> Iterator[tuple[str, Callable[..., object]]]:
    """Name every section of a config and every entry of its table, with what holds its options; losses aside."""
    yield "Keys of no section", Common
    yield "network", NetworkOptions
    yield from FIXED.items()
    for name, method in METHODS.items():
        yield f"method: {name}", method
    for section, (entries, shared) in TABLES.items():
        for group in shared:
            yield f"{section}, of every name ({group.__name__})", group
        for name, entry in entries.items() if section != "loss" else ():
            yield f"{section}: {name}", entry
    for modality, extractors in EXTRACTORS.items():
        for name, extractor in extractors.items():
            yield f"--{modality} {name}", extractor


def options_page() -> str:
    """Lay out the options of all sections but the losses, which have a page of their own."""
    parts = [OPTIONS_HEAD]
    for name, entry in sections():
        parts.append(f"\n## {name}\n\n{table(entry) if schema(entry) else 'No options.'}")
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def example(entry: Callable[..., object]) -> str:
    """Give the example of an entry's docstring, without its prompts."""
    lines = (inspect.getdoc(entry) or "").splitlines()
    return "\n".join(line.strip()[4:] for line in lines if line.strip().startswith(">>>"))


if __name__ == "__main__":
    OPTIONS.write_text(options_page(), encoding="utf-8")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
