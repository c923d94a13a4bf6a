"""The parts of a self-contained HTML page."""

from collections.abc import Sequence
from html import escape

STYLE = """
:root { --ink: #22303c; --faint: #d8dee4; --teal: #0b7285; --green: #2b8a3e; --red: #c92a2a; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 1080px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: 0; }
h2 { font-size: 1.1rem; margin-top: 2.2rem; border-bottom: 1px solid var(--faint); }
h3 { font-size: .95rem; margin: 1rem 0 .3rem; }
p { max-width: 75ch; } p.figure { font-size: 2.6rem; margin: .4rem 0; color: var(--teal); }
p.figure span { font-size: .95rem; color: var(--ink); margin-left: .8rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
td, th { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid var(--faint); font-weight: normal; }
th { font-weight: 600; } th, td.short { white-space: nowrap; } svg { width: 100%; height: auto; max-width: 960px; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.row { display: flex; gap: .6rem; margin: .5rem 0; overflow-x: auto; }
figure { margin: 0; width: 136px; flex: none; border-top: 4px solid var(--faint); padding-top: 3px; }
figure.query { border-color: var(--ink); margin-right: .8rem; } figure.hit { border-color: var(--green); }
figure.miss { border-color: var(--red); } figure img, figure video, figure audio { width: 100%; display: block; }
figcaption { font-size: .78rem; line-height: 1.25; } figcaption small { display: block; color: #5c6b78; }
pre { background: #f4f6f8; padding: .8rem; overflow-x: auto; }
footer { margin-top: 3rem; color: #5c6b78; font-size: .85rem; }
@media (max-width: 700px) { .pair { grid-template-columns: 1fr; } }
"""

SHORT = 28
"""Letters of a cell that is never broken into lines."""


def document(title: str, body: str) -> str:
    """Wrap a body as a whole page that loads nothing from elsewhere."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{body}<footer>Written by aadml.</footer></body></html>\n"
    )


def section(title: str, content: str, note: str = "") -> str:
    """Lay out a titled part of a page, with a sentence of explanation where there is one."""
    return f"<section><h2>{escape(title)}</h2>{f'<p>{escape(note)}</p>' if note else ''}{content}</section>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table; an empty header is left out."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if any(header) else ''}{lines}</table>"


def _cell(text: str) -> str:
    """Lay out a cell; one that is short (a number with its spread) stays on one line."""
    kind = ' class="short"' if len(text) <= SHORT else ""
    return f"<td{kind}>{escape(text)}</td>"
