"""The skeleton of a self-contained HTML page: head and style, sections, tables, figures, facts."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from aadml.reports.figures import COLORS, FAINT, INK
from aadml.reports.tables import Cell, Table, is_number

_BEGINNING = "<!doctype html>"

DARK_COLORS = ("#3bc9db", "#ff922b", "#b197fc", "#69db7c", "#f783ac", "#74c0fc", "#c9ab9c", "#adb5bd")
"""What the colors of figures become on a dark page, in the order of `COLORS`."""

_LIGHT = f"""--paper: #ffffff; --raised: #f4f6f8; --ink: {INK}; --muted: #56646f; --faint: {FAINT}; --accent: #0b7285;
  --good: #237032; --bad: #c92a2a; --warn: #fff4e0; {" ".join(f"--c{n}: {c};" for n, c in enumerate(COLORS))}"""
_DARK = f"""--paper: #12181e; --raised: #1c242c; --ink: #e3e9ee; --muted: #a3b1bd; --faint: #37434e; --accent: #3bc9db;
  --good: #69db7c; --bad: #ff8787; --warn: #33291a; {" ".join(f"--c{n}: {c};" for n, c in enumerate(DARK_COLORS))}"""

_VARIABLES = {INK: "var(--ink)", FAINT: "var(--faint)"} | {c: f"var(--c{n})" for n, c in enumerate(COLORS)}

STYLE = (
    f":root {{ color-scheme: light dark; {_LIGHT} }}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}"
    """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1080px; margin: 0 auto; padding: 2rem 1rem 3rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.8rem 0 .6rem; padding-bottom: .3rem; border-bottom: 1px solid var(--faint); }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p { max-width: 72ch; margin: .4rem 0; } p.kind { color: var(--muted); margin: 0; } small, .note { color: var(--muted); }
.note { font-size: .9rem; } .verdict { font-size: 1.1rem; margin: .8rem 0; }
.warning { background: var(--warn); border-left: 4px solid var(--c1); padding: .5rem .8rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin-top: 1.2rem; font-size: .9rem; }
a { color: var(--accent); }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: .8rem;
  margin: 1.2rem 0; }
dl.facts div { background: var(--raised); border-radius: 8px; padding: .7rem .9rem; }
dl.facts dt { font-size: .85rem; color: var(--muted); } dl.facts dd { margin: 0; font-size: .85rem; }
dl.facts dd.value { font-size: 1.6rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
dl.facts div:first-child dd.value { color: var(--accent); font-weight: 600; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
td, th { padding: .3rem .8rem .3rem 0; text-align: left; border-bottom: 1px solid var(--faint); font-weight: normal;
  vertical-align: top; } thead th { font-weight: 600; vertical-align: bottom; }
.number { text-align: right; } td.number, .short { white-space: nowrap; } td.best { font-weight: 700; }
td:not(.short, .number) { min-width: 14rem; } th[scope=row] { position: sticky; left: 0; background: var(--paper); }
@media (max-width: 700px) { dl.facts dd.value { font-size: 1.25rem; }
  th[scope=row] { white-space: normal; min-width: 6rem; max-width: 8rem; } }
caption { text-align: left; color: var(--muted); padding-bottom: .3rem; }
.drawings { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 1.2rem; }
.drawing { margin: .8rem 0; max-width: 32rem; } .drawing figcaption { color: var(--muted); font-size: .9rem; }
.drawing svg { width: 100%; height: auto; display: block; stroke-linejoin: round; }
.drawing svg text { fill: currentColor; font-family: inherit !important; }
pre { background: var(--raised); padding: .8rem; border-radius: 6px; overflow-x: auto; overflow-wrap: normal;
  font-size: .85rem; } pre.command { white-space: pre-wrap; overflow-wrap: anywhere; } summary { cursor: pointer; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
footer { margin-top: 3rem; color: var(--muted); font-size: .85rem; }
@media print { html { font-size: 10px; } body { font-size: 1rem; max-width: none; padding: 0; } nav { display: none; }
  .scroll, pre { overflow: visible; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  td, th { padding-right: .5rem; } td.number, .short { white-space: normal; }
  td:not(.short, .number) { min-width: 8rem; } th[scope=row] { position: static; }
  h2, h3, h4, .note { break-after: avoid; } tr, figure, .note, dl.facts div { break-inside: avoid; }
  .drawing { max-width: 48rem; } }
"""
)


@dataclass(frozen=True)
class Section:
    """A titled part of a page; without content it is left out.

    Attributes:
        title: of the part.
        content: HTML.
        notes: plain sentences above the content.
    """

    title: str
    content: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Fact:
    """A figure of the summary: what it is, its value, and a few words below."""

    name: str
    value: str
    words: str = ""


def text(value: object) -> str:
    """Make any text fit for HTML: markup is shown, not obeyed; what is not Unicode is shown as escapes."""
    return escape(str(value).encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0"))


def is_page(path: Path) -> bool:
    """Tell whether a file is an HTML page."""
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)).lower() == _BEGINNING.encode()


def document(
    title: str,
    kind: str,
    summary: str,
    sections: Sequence[Section],
    *,
    data: str = "",
    style: str = "",
    script: str = "",
) -> str:
    """Write a whole page, which loads nothing from elsewhere and runs no other script than its own.

    Args:
        title: its heading.
        kind: what sort of page it is, in a few words.
        summary: HTML that stands first.
        sections: that follow.
        data: HTML that the script reads.
        style: further rules.
        script: JavaScript; the page's policy names its checksum.
    """
    shown = [(f"part-{number}", section) for number, section in enumerate(sections, 1) if section.content]
    links = "".join(f'<a href="#{name}">{text(section.title)}</a>' for name, section in shown)
    parts = "".join(_section(name, section) for name, section in shown)
    scripts = f"{data}<script>{script}</script>" if script else ""
    return (
        f'{_BEGINNING}\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{text(title)}</title>'
        f'<style>{STYLE}{style}</style></head><body><header><p class="kind">{text(kind)}</p><h1>{text(title)}</h1>'
        f'</header><main>{summary}<nav aria-label="Parts of this page">{links}</nav>{parts}</main>'
        f"<footer>Written by aadml. This page needs no network.</footer>{scripts}</body></html>\n"
    )


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f" script-src 'sha256-{digest}';" if script else ""
    return f"default-src 'none'; img-src data: blob:; media-src data: blob:; style-src 'unsafe-inline';{scripts}"


def _section(name: str, section: Section) -> str:
    notes = "".join(f'<p class="note">{text(note)}</p>' for note in section.notes)
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{text(section.title)}</h2>'
        f"{notes}{section.content}</section>"
    )


def facts(shown: Sequence[Fact]) -> str:
    """Lay out the figures of a summary, the most important one first."""
    return f'<dl class="facts">{"".join(map(_fact, shown))}</dl>'


def _fact(fact: Fact) -> str:
    words = f"<dd>{text(fact.words)}</dd>" if fact.words else ""
    return f'<div><dt>{text(fact.name)}</dt><dd class="value">{text(fact.value)}</dd>{words}</div>'


def table(shown: Table, columns: Sequence[str] | None = None) -> str:
    """Lay out a table of results in a box of its own, which scrolls where it is wider than the page.

    Columns without any content are left out.

    Args:
        shown: the table; its caption names the box, its notes are left to the page.
        columns: that are shown; all by default. The first one names the rows.
    """
    wanted = [j for j, name in enumerate(shown.columns) if columns is None or name in columns]
    places = [j for j in wanted if j == wanted[0] or any(row[j] not in (None, "") for row in shown.rows)]
    numeric = {j for j in places if any(_is_figure(row[j]) for row in shown.rows)}
    head = "".join(
        f'<th scope="col"{_class("number" * (j in numeric and j != places[0]))}>{text(shown.columns[j])}</th>'
        for j in places
    )
    lines = []
    for i, row in enumerate(shown.rows):
        cells = [_cell(shown, i, j, first=j == places[0], number=j in numeric) for j in places]
        lines.append(f"<tr>{''.join(cells)}</tr>" if row else "")
    label = text(shown.caption or shown.columns[places[0]])
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(shown: Table, i: int, j: int, *, first: bool, number: bool) -> str:
    content = shown.text(shown.rows[i][j])
    kind = ["short"] * (len(content) <= _SHORT) + ["number"] * (number and not first) + ["best"] * shown.is_best(i, j)
    cell = 'th scope="row"' if first else "td"
    return f"<{cell}{_class(' '.join(kind))}>{text(content)}</{cell[:2]}>"


_SHORT = 48
"""Letters of a cell that is never broken into lines."""


def _is_figure(cell: Cell) -> bool:
    """Tell whether a cell stands flush right: a number, also one that is written out."""
    return is_number(cell) or (isinstance(cell, str) and re.fullmatch(r"[+-]?\d+(\.\d+)?", cell) is not None)


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def properties(rows: Sequence[tuple[str, Cell]]) -> str:
    """Lay out names and what they are."""
    lines = "".join(f'<tr><th scope="row">{text(name)}</th><td>{text(value)}</td></tr>' for name, value in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Facts"><table><tbody>{lines}</tbody></table></div>'
    )


def drawing(svg: str, alt: str, caption: str = "") -> str:
    """Put a figure into the page: in the colors of the page, with words for those who cannot see it.

    Args:
        svg: an element, as `figures.svg` writes it.
        alt: what it shows.
        caption: a sentence below it.
    """
    svg = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>", "", svg, flags=re.DOTALL)
    own = hashlib.sha256(f"{alt}\n{svg}".encode("utf-8", "backslashreplace")).hexdigest()[:8]  # two may look alike
    used = set(re.findall(r"(?:href=\"|url\()#([^\")]+)", svg))
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{own}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{own}-", svg)
    svg = re.sub(
        r' style="[^"]*"', lambda m: re.sub(r"#[0-9a-f]{6}\b", lambda c: _VARIABLES.get(c[0], c[0]), m[0]), svg
    )
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{text(alt)}" ', 1)
    words = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return f'<figure class="drawing">{svg}{words}</figure>'


def drawings(panels: Sequence[str]) -> str:
    """Lay out figures side by side where there is room."""
    return f'<div class="drawings">{"".join(panels)}</div>' if len(panels) > 1 else "".join(panels)


def command(line: str) -> str:
    """Show a command."""
    return f'<pre class="command">{text(line)}</pre>' if line else ""


def details(title: str, content: str) -> str:
    """Show long text on demand."""
    return f'<details><summary>{text(title)}</summary><pre tabindex="0">{text(content)}</pre></details>'
