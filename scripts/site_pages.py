"""Build the documentation site: collect the pages of mkdocs.yml, write the generated ones, run Zensical strictly.

Usage: python -m scripts.site_pages [-o site]
"""

import argparse
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import yaml

import aadml
from aadml.cli import COMMANDS, cli
from aadml.search.store import _NEW as INDEX_SCHEMA

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE_URL = "https://github.com/aadml/aadml/blob/main/"
FORMATS = {
    "Feature file": "aadml.feature_extraction.feature_file",
    "Work folder of an extraction": "aadml.feature_extraction.ledger",
    "Run folder": "aadml.runs.store",
    "Model folder": "aadml.model.packing",
    "Index": "aadml.search.store",
    "Checksums of an index": "aadml.search.checksums",
}
"""Title of each file format -> the module whose docstring describes the format."""
CODE = re.compile(r"(```.*?```)", re.DOTALL)
INCLUDE = re.compile(r"<!-- include: (.+) -->")
REMOTE = re.compile(r"https://(?:unpkg\.com|cdn\.jsdelivr\.net)/")
"""URLs of libraries that the theme loads for features which no page uses."""


def navigation(entry: object) -> Iterator[str]:
    """Yield the pages of a navigation, in order."""
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from navigation(part)


def commands_page() -> str:
    """Return the page of all commands, from their help."""
    parts = ["# Commands\n\nEvery command of `aadml`, with its options. `aadml COMMAND --help` prints the same.\n"]
    for name in COMMANDS:
        context = click.Context(cli, info_name="aadml")
        command = cli.get_command(context, name)
        assert command is not None
        context = click.Context(command, info_name=f"aadml {name}")
        rows = [record for option in command.get_params(context) if (record := option.get_help_record(context))]
        usage = " ".join(command.collect_usage_pieces(context))
        text = inspect.cleandoc(command.help or "").replace("\b\n", "")
        parts.append(f"\n## {name}\n\n```sh\naadml {name} {usage}\n```\n\n{escaped(text)}\n\n")
        parts.append("| option | effect |\n|---|---|\n")
        parts += [f"| `{cell(flags)}` | {escaped(cell(effect))} |\n" for flags, effect in rows]
    return "".join(parts)


def cell(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def escaped(text: str) -> str:
    """Return text in which Markdown reads no link, emphasis or tag."""
    return re.sub(r"(`[^`]*`)|([\[\]<*_])", lambda match: match[1] or f"\\{match[2]}", text)


def python_page() -> str:
    """Return the page of the public names of aadml, which mkdocstrings fills."""
    names = [name for name in aadml.__all__ if name not in ("__version__", "losses")]
    names.sort(key=lambda name: (name.endswith("Error"), name[0].isupper()))
    entries = "\n".join(f"::: aadml.{name}\n" for name in names)
    return f"# Python\n\nEvery public name of `aadml`; [losses](losses.md) have a page of their own.\n\n{entries}"


def files_page() -> str:
    """Return the page of the file formats, from the docstrings of the modules that write them."""
    opening = "No file of aadml holds code or pickle. `aadml verify` checks each against its checksums."
    parts = [f"# File formats\n\n{opening}\n"]
    for title, module in FORMATS.items():
        parts.append(f"\n## {title}\n\n{inspect.getdoc(importlib.import_module(module))}\n")
        if module.endswith("search.store"):
            parts.append(f"\n```sql\n{INDEX_SCHEMA.strip()}\n```\n")
    return "".join(parts)


GENERATED: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "python.md": python_page,
    "files.md": files_page,
}


def source(page: str) -> Path:
    """Return the file of a page; for a page without a file, the path in docs/ that a generated page has."""
    name = Path(page).name
    places = [folder / name for folder in (DOCS / "site", DOCS / "tutorials")]
    return next((place for place in places if place.is_file()), DOCS / name)


def with_site_links(text: str, page: str, pages: dict[Path, str]) -> str:
    """Return a page whose links point to pages of the site, copied pictures, or files in the repository."""
    place = source(page).parent

    def replaced(match: re.Match[str]) -> str:
        target, mark, heading = match[2].partition("#")
        path = ROOT / target.removeprefix(SOURCE_URL) if target.startswith(SOURCE_URL) else (place / target).resolve()
        if path.suffix in (".png", ".svg"):
            address = relative(str(Path("figures") / path.name), page)
        elif path in pages:
            address = relative(pages[path], page)
        elif path.exists():
            address = SOURCE_URL + str(path.relative_to(ROOT))
        else:
            raise SystemExit(f"{page}: the link {match[2]} leads nowhere; write a path relative to {place}")
        return f"{match[1]}{address}{mark}{heading})"

    pattern = rf"(\]\()(?!(?!{re.escape(SOURCE_URL)})[a-z]+:|#)([^)\s]+)\)"
    return "".join(part if CODE.match(part) else re.sub(pattern, replaced, part) for part in CODE.split(text))


def relative(target: str, page: str) -> str:
    """Return the relative address of a file of the site for a link on a page."""
    return os.path.relpath(target, Path(page).parent)


def collect(folder: Path) -> None:
    """Write all pages, pictures and styles of the site into a folder."""
    entries = list(navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    pages = {source(page): page for page in entries}
    texts = {
        page: path.read_text(encoding="utf-8") if path.is_file() else GENERATED[path.name]()
        for path, page in pages.items()
    }
    pages |= {ROOT / name: page for page, text in texts.items() for name in INCLUDE.findall(text)}
    for page, text in texts.items():
        text = INCLUDE.sub(lambda match: included(match[1]), text)
        text = text.replace("```python\n>>> ", "```pycon\n>>> ")  # output is not colored as code
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(with_site_links(text, page, pages), encoding="utf-8")
    (folder / "figures").mkdir()
    for picture in [*DOCS.glob("figures/*"), *DOCS.glob("tutorials/*.svg")]:
        shutil.copy(picture, folder / "figures")
    shutil.copy(DOCS / "site" / "style.css", folder)


def included(path: str) -> str:
    """Return a page with its headings one level lower, or for FILE#TITLE one unchanged section."""
    name, _, title = path.partition("#")
    text = (ROOT / name).read_text(encoding="utf-8")
    if title:
        return f"## {title}\n" + text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    parts = CODE.split(text)
    return "".join(part if CODE.match(part) else re.sub(r"^#", "##", part, flags=re.MULTILINE) for part in parts)


def build(output: Path) -> None:
    """Build the site; an existing folder at `output` is replaced once the new site is complete."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        shutil.copy(ROOT / "mkdocs.yml", work)
        collect(work / "pages")
        environment = os.environ | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        program = [sys.executable, "-m", "zensical", "build", "--strict"]
        if subprocess.run(program, cwd=work, env=environment, check=False).returncode:
            raise SystemExit("the site was not built; mend the pages that are named above")
        for script in (work / "site").rglob("*.js"):
            script.write_text(REMOTE.sub("/", script.read_text(encoding="utf-8")), encoding="utf-8")
        if (output / "search.json").is_file():
            shutil.rmtree(output)
        shutil.copytree(work / "site", output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "site")
    build(parser.parse_args().output)
