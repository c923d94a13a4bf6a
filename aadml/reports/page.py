"""Self-contained HTML pages: the document, and its parts, rendered with the macros of `templates/parts.html`.

Every function that renders a part returns HTML. The templates escape all text. Only arguments documented as HTML are
inserted unchanged.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from aadml.feature_extraction.ground.figures import COLORS, FAINT, INK
from aadml.reports.tables import Cell, Table, is_number

_BEGINNING = "<!doctype html>"
_TEMPLATES = Path(__file__).with_name("templates")

STYLE = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
"""Stylesheet of every page, with a light and a dark color scheme."""

PLAYER_SCRIPT = (_TEMPLATES / "players.js").read_text(encoding="utf-8")
"""JavaScript that attaches the media to the players of a page. The content security policy allows its checksum."""

_VARIABLES = {INK: "var(--ink)", FAINT: "var(--faint)"} | {c: f"var(--c{n})" for n, c in enumerate(COLORS)}
_SHORT, _LONG = 20, 48  # characters: cells up to _SHORT are never wrapped, cells above _LONG have a minimum width
_PHONE = 42  # characters of a line on a phone; wider tables have a line for each cell
_ROW_NAME = 11  # characters of the name of a row
_GAP = 2  # characters between columns
_DIFFERENCE = re.compile(r"([+-]\d\S* \[[^\]]*\]) (\(.*)")


@dataclass(frozen=True)
class Section:
    """Titled part of a page. A part without content is left out.

    Attributes:
        title: title of the part.
        content: content as HTML.
        notes: plain sentences above the content.
    """

    title: str
    content: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Fact:
    """Number in the summary of a page: its name, its value, and a few words below the value."""

    name: str
    value: str
    words: str = ""


def _printable(value: object) -> object:
    """Return a value as text, with escape sequences for characters that HTML cannot contain.

    The escaped characters are lone surrogates and NUL. A value of type `Markup` is returned unchanged.
    """
    if isinstance(value, Markup):
        return value
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, finalize=_printable,
    trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
)  # fmt: skip


def render(template: str, **values: object) -> str:
    """Render a file of `templates`."""
    return _ENVIRONMENT.get_template(template).render(**values)


def _part(name: str, *values: object) -> str:
    return str(getattr(_ENVIRONMENT.get_template("parts.html").module, name)(*values)).strip()


def text(value: object) -> str:
    """Escape text for HTML that is written without a template."""
    return str(escape(_printable(value)))


def is_page(path: Path) -> bool:
    """Return whether a file begins as an HTML page."""
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)).lower() == _BEGINNING.encode()


def document(
    title: str, kind: str, summary: str, sections: Sequence[Section], media: Sequence[Sequence[str]] = ()
) -> str:
    """Render a page that loads no external files and runs only its own script.

    Args:
        title: heading of the page.
        kind: kind of the page, in a few words.
        summary: HTML above the sections.
        sections: parts of the page; parts without content are left out.
        media: (media type, media in base64, picture in base64) of each preview. A player refers to a preview by its
            position in this sequence.
    """
    shown = [(f"part-{number}", section) for number, section in enumerate(sections, 1) if section.content]
    return render(
        "page.html", title=title, kind=kind, summary=summary, sections=shown, media=media, style=STYLE,
        script=PLAYER_SCRIPT, digest=base64.b64encode(hashlib.sha256(PLAYER_SCRIPT.encode()).digest()).decode(),
    )  # fmt: skip


def summary(
    shown: Sequence[Fact],
    sentences: Sequence[str] = (),
    *,
    verdict: str = "",
    warnings: Sequence[str] = (),
    alarm: Sequence[str] = (),
) -> str:
    """Render the summary of a page from plain sentences.

    Args:
        shown: the facts.
        sentences: notes below the facts.
        verdict: headline above the facts.
        warnings: sentences between facts and notes.
        alarm: sentences above the verdict, with reasons not to trust the facts. The first sentence has the style of
            the verdict.
    """
    return _part("summary", shown, sentences, verdict, warnings, alarm)


def notes(sentences: Sequence[str]) -> str:
    """Render notes, in two columns if the page is wide enough."""
    return _part("notes", sentences)


def table(shown: Table, columns: Sequence[str] | None = None) -> str:
    """Render a table of results.

    Empty columns are left out. On a phone, a table that is wider than the screen has one line per cell, with the name
    of its column. On larger screens, the box of the table scrolls.

    Args:
        shown: the table; its caption labels the box, and its notes are not rendered.
        columns: names of the columns to show, in this order; all by default. The first column names the rows.
    """
    wanted = [*range(len(shown.columns))]
    if columns is not None:
        wanted = [shown.columns.index(name) for name in columns if name in shown.columns]
    places = [j for j in wanted if j == wanted[0] or any(row[j] not in (None, "") for row in shown.rows)]
    first, numeric = places[0], {j for j in places[1:] if any(_is_numeric(row[j]) for row in shown.rows)}
    head = [(shown.columns[j], "number" * (j in numeric)) for j in places]
    rows = [[_cell(shown, i, j, number=j in numeric) for j in places] for i, row in enumerate(shown.rows) if row]
    widths = [max(map(_narrowest, column)) for column in zip(head, *rows, strict=True)]
    width = _GAP * len(widths) + max(_ROW_NAME, widths[0]) + sum(widths[1:])
    return _part(
        "table", shown.caption or shown.columns[first], head, rows, "results stacked" if width > _PHONE else "results"
    )


def _cell(shown: Table, i: int, j: int, *, number: bool) -> tuple[str, str]:
    """Return the text of a cell and its CSS classes."""
    content = shown.text(shown.rows[i][j])
    length = len(content)
    kinds = {"short": length <= _SHORT, "long": length > _LONG, "number": number, "best": shown.is_best(i, j)}
    if parts := _DIFFERENCE.fullmatch(content):  # a line break is allowed only between interval and p
        content = Markup(" ").join(Markup('<span class="short">{}</span>').format(part) for part in parts.groups())
    return content, " ".join(kind for kind, applies in kinds.items() if applies)


def _narrowest(cell: tuple[str, str]) -> int:
    """Return the smallest width of a cell in characters: the longest part without a possible line break."""
    content, kinds = cell
    if "short" in kinds.split():
        return len(content)
    return max((len(word) for word in re.split(r"[\s-]", Markup(content).striptags())), default=0)


def _is_numeric(cell: Cell) -> bool:
    """Return whether a cell is aligned as a number. Text in decimal notation counts as a number."""
    return is_number(cell) or (isinstance(cell, str) and re.fullmatch(r"[+-]?\d+(\.\d+)?", cell) is not None)


def properties(rows: Sequence[tuple[str, Cell]]) -> str:
    """Render a table of names and values."""
    return _part("properties", rows)


def drawing(svg: str, alt: str, caption: str = "") -> str:
    """Render a figure in the colors of the page, with a text alternative.

    Args:
        svg: HTML of an SVG element, as returned by `aadml.feature_extraction.ground.figures.svg`.
        alt: text alternative.
        caption: a sentence below the figure.
    """
    svg = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>", "", svg, flags=re.DOTALL)
    # a checksum makes ids unique in the page, since two figures may have the same ids
    prefix = hashlib.sha256(f"{alt}\n{svg}".encode("utf-8", "backslashreplace")).hexdigest()[:8]
    used = set(re.findall(r"(?:href=\"|url\()#([^\")]+)", svg))
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", svg)
    svg = re.sub(
        r' style="[^"]*"', lambda m: re.sub(r"#[0-9a-f]{6}\b", lambda c: _VARIABLES.get(c[0], c[0]), m[0]), svg
    )
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{text(alt)}" ', 1)
    return _part("figure", svg, caption)


def drawings(panels: Sequence[str]) -> str:
    """Render figures or other parts (HTML) side by side if the page is wide enough."""
    return _part("drawings", panels) if len(panels) > 1 else "".join(panels)


def command(line: str) -> str:
    """Render a command line; "" for an empty line."""
    return preformatted(line, "command") if line else ""


def preformatted(content: str, kind: str = "") -> str:
    """Render text with its line breaks.

    Args:
        content: the text.
        kind: CSS class of the element.
    """
    return _part("preformatted", content, kind)


def details(title: str, content: str) -> str:
    """Render long text in an element that the reader can expand."""
    return _part("details", title, content)


def player(number: int, name: str, preview: object) -> str:
    """Render the player or picture of a clip, or a sentence if the clip has no preview.

    Args:
        number: number of the preview in the data of the page.
        name: id of the clip.
        preview: a `Preview`.
    """
    return _part("player", number, name, preview)
