"""Run the tutorials of docs/tutorials and write their pages: text, code, printed output and figures of that run.

Usage: python -m scripts.tutorials [NAMES] [-o docs/tutorials]

A tutorial is a script in which `# %% [markdown]` starts text and `# %%` starts code. It runs in an empty folder. The
page shows an SVG file that a cell writes below the cell; the name of the file is the description.
"""

import argparse
import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
SETTINGS = {
    "svg.hashsalt": "aadml",
    "svg.fonttype": "none",
    "figure.figsize": (8, 3),
    "figure.constrained_layout.use": True,
}
NOTE = "\n*This page was made by running [{name}.py](https://github.com/aadml/aadml/blob/main/docs/tutorials/{name}.py).*\n"


def cells(script: str) -> Iterator[tuple[bool, str]]:
    """Yield the cells of a script: True and Markdown, or False and code."""
    for cell in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        kind, _, body = cell.partition("\n")
        if "[markdown]" in kind:
            yield True, re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip()
        else:
            yield False, body.strip()


def page(path: Path, output: Path) -> str:
    """Run a tutorial in the current folder and return its page; its figures are moved to `output`."""
    parts, names = [], {"__name__": path.stem}
    for is_text, body in cells(path.read_text(encoding="utf-8")):
        if is_text:
            parts.append(f"{body}\n")
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(body, str(path), "exec"), names)
        parts.append(f"```python\n{body}\n```\n")
        if printed.getvalue():
            parts.append(f"```text\n{printed.getvalue().rstrip()}\n```\n")
        for figure in sorted(Path().glob("*.svg")):
            name = f"{path.stem}-{figure.name}"
            text = "\n".join(line.rstrip() for line in figure.read_text(encoding="utf-8").splitlines())
            (output / name).write_text(text + "\n", encoding="utf-8")
            figure.unlink()
            parts.append(f"![{figure.stem.replace('-', ' ')}]({name})\n")
    return "\n".join(parts) + NOTE.format(name=path.stem)


def write(path: Path, output: Path) -> None:
    """Run a tutorial in an empty folder and write its page."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, mpl.rc_context(SETTINGS):
        os.chdir(folder)
        try:
            text = page(path, output)
        finally:
            os.chdir(before)
    (output / f"{path.stem}.md").write_text(text, encoding="utf-8")
    print(f"{path.stem}: {len(text.splitlines())} lines")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output", type=Path, default=TUTORIALS)
    arguments = parser.parse_args()
    for script in sorted(TUTORIALS.glob("*.py")):
        if not arguments.names or script.stem in arguments.names:
            write(script, arguments.output.resolve())
