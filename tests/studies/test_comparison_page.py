"""Tables of a comparison on planted scores."""

from dataclasses import replace
from pathlib import Path

from aadml.reports.published import NOTE
from aadml.reports.tables import markdown
from aadml.studies import comparison_page
from aadml.studies.comparison_page import proxy_table, write_comparison
from aadml.studies.control_rows import ALONE, NONE
from aadml.studies.execution import Execution
from aadml.studies.results import CellScores
from aadml.studies.sweep_figures import dots
from tests.papers.planted_scores import row, scores
from tests.reports.parsed_html import words

ABOUT = (
    "MAP on the test split of ave.h5 (9 train, 3 test clips), protocol inductive, chance 0.100, "
    "tie rate at most 0.000; mean ± sd over 2 seeds. A note on the data."
)
COLUMNS = (
    "MAP audio-visual | MAP visual-audio | MAP mean | difference to {} | recall@5 audio-visual | recall@5 visual-audio "
    "| recall@5 mean | train MAP | epochs | steps | seconds | parameters | seeds | AVE published audio-visual "
    "| AVE published visual-audio | AVE published mean"
)
METHODS = [
    "cca | -0.250 [-1.000, +1.000] (p = 0.251) | 0.350 ± 0.071 | 0.190 | 0.189 | 0.190",
    "aadml |  | 0.600 ± 0.141 | 0.890 | 0.883 | 0.887",
    "aadml, without proxy | -0.150 [-1.000, +1.000] (p = 0.251) | 0.450 ± 0.071 | – | – | –",
    "dcca |  | – | 0.221 | 0.223 | 0.222",
]
LOSSES = [
    "triplet |  | 0.250 ± 0.071 | 0.404 | 0.431 | 0.418",
    "aa-triplet | +0.450 [-1.000, +1.000] (p = 0.282) | 0.700 ± 0.141 | 0.890 | 0.883 | 0.887",
    "aa-triplet, half | +0.250 [-1.000, +1.000] (p = 0.377) | 0.500 ± 0.000 | – | – | –",
    "no metric loss | -0.150 [-1.000, +1.000] (p = 0.410) | 0.100 ± 0.000 | – | – | –",
    "aa-hinge | +0.150 [-1.000, +1.000] (p = 0.410) | 0.400 ± 0.141 | 0.786 | 0.822 | 0.804",
]
PROXIES = f"""\
Mean MAP with the anchor-aware proxy, minus the mean MAP of each control. {ABOUT}

| with proxy | MAP mean | minus without proxy | minus half | minus no metric loss | steps |
| --- | ---: | --- | --- | --- | ---: |
| aadml | 0.600 ± 0.141 | +0.150 [-1.000, +1.000] (p = 0.410) | – | – | 12 |
| aa-triplet | 0.700 ± 0.141 | +0.450 [-1.000, +1.000] (p = 0.282) | +0.200 [-1.000, +1.000] (p = 0.410) \
| +0.600 [-1.000, +1.000] (p = 0.315) | 12 |
"""
SUMMARY = f"""\
aa-triplet scores highest, 7.0 times chance. Its difference to triplet is undecided, as two seeds are too few: \
+0.450 [-1.000, +1.000] (p = 0.282).
best test MAP, mean of both directions|0.700 ± 0.141|aa-triplet
compared with|0.250 ± 0.071|triplet
chance|0.100|MAP of a random order
runs|16|9 rows, 1 run failed
Of 4 comparisons: 0 significantly above, 0 significantly below, 0 equal within ±0.01, 4 undecided.
{ABOUT}
a note"""


def control(table, item, name):
    return replace(row(table, item, f"{item}-{name}"), control=name)


def lines(table):
    """Lines of a table of rows in Markdown, of which each has difference, MAP and published results."""
    for line in table:
        name, difference, spread, *published = line.split(" | ")
        cost = "0.700 ± 0.000 | 3 | 12 | 1.5 | 7 | 2" if spread != "–" else "– | – | – | – | – | 0"
        best = f"**{spread}**" if spread in ("0.600 ± 0.141", "0.700 ± 0.141") else spread
        yield f"| {name} | {spread} | {spread} | {best} | {difference} | – | – | – | {cost} | {' | '.join(published)} |"


def test_a_comparison_in_full(monkeypatch, of_ave):
    rows = [
        row("methods", "cca"), row("methods", "aadml"), control("methods", "aadml", ALONE), row("methods", "dcca"),
        row("losses", "triplet"), row("losses", "aa-triplet"), control("losses", "aa-triplet", "half"),
        row("losses", NONE), row("losses", "aa-hinge"),
    ]  # fmt: skip
    maps = [[0.3, 0.4], [0.5, 0.7], [0.4, 0.5], [], [0.2, 0.3], [0.6, 0.8], [0.5, 0.5], [0.1, 0.1], [0.3, 0.5]]
    found = {of.cell.name: scores(of, values) for of, values in zip(rows, maps, strict=True)}
    found["dcca"] = CellScores(rows[3].cell, {}, {0: "no disk"})
    drawn, pages = [], []
    monkeypatch.setattr(comparison_page, "drawn", lambda draw, cells: drawn.append((draw, list(cells))) or "<svg x/>")
    monkeypatch.setattr(comparison_page, "write_study", lambda *given: pages.append(given) or Path("page"))
    execution = Execution(folder=Path("x"))
    tables, path = write_comparison(rows, found, range(2), execution, notes=["a note"], metrics=["recall@5"])
    ((of_study, title, kind, head, parts),) = pages
    assert (of_study, title, kind, path) == (execution, "ave.h5: methods and losses", "Comparison", Path("page"))
    assert words(head) == SUMMARY.replace("|", "\n")
    shown = {name: markdown(table) for part in parts for name, table in part.tables.items()}
    for name, of, reference, body in (("methods", "method", "aadml", METHODS), ("losses", "loss", "triplet", LOSSES)):
        first = [ABOUT, "", f"| {of} | {COLUMNS.format(reference)} |"]
        text = shown[name].splitlines()
        assert [*text[:3], *text[4 : 4 + len(body)]] == [*first, *lines(body)]
    assert [note.partition(" ")[0] for note in parts[0].tables["methods"].notes] == [
        "Differences",
        "Two",
        "Columns",
        "dcca,",
    ]
    assert shown["proxies"].partition("\n- ")[0] == PROXIES
    assert tables == [table for part in parts for table in part.tables.values()]
    assert [(part.title, list(part.tables), dict(part.drawings)) for part in parts] == [
        ("Methods", ["methods"], {"methods": "<svg x/>"}),
        ("Losses, with and without anchor-aware proxies", ["losses"], {"losses": "<svg x/>"}),
        ("The proxy and its controls", ["proxies"], {}),
    ]
    assert drawn == [(dots, [of.name for of in rows[:4]]), (dots, [of.name for of in rows[4:]])]
    assert 'aria-label="Methods: MAP of every row"' in parts[0].content
    assert NOTE not in parts[0].notes
    assert parts[2].notes[0].startswith("Mean MAP with the anchor-aware proxy, minus the mean MAP of each control.")
    few, _ = write_comparison(rows[3:6], found, range(2), execution, baseline="aa-triplet")
    assert list(pages[-1][4][1].tables) == ["losses"]
    assert len(pages[-1][4]) == 2
    assert [table.columns[table.columns.index("MAP mean") + 1] for table in few[:2]] == ["difference to aa-triplet"] * 2
    assert words(pages[-1][3]).startswith("aa-triplet scores highest, 7.0 times chance.\nbest test MAP")
    assert drawn[2:] == [(dots, ["triplet", "aa-triplet"])]  # without runs nothing is drawn
    write_comparison(rows[1:6], found, range(2), execution, baseline="aa-triplet")
    assert [list(part.tables) for part in pages[-1][4]] == [["methods"], ["losses"], ["proxies"]]
    assert "compared with" not in words(pages[-1][3])
    write_comparison(rows[:2], found, range(2), execution, baseline="cca")
    assert "compared with\n0.350 ± 0.071\ncca" in words(pages[-1][3])
    (table, _), _ = write_comparison([rows[1], rows[4]], found, range(2), execution, baseline="triplet")
    assert table.columns[4] == "difference to triplet"
    assert str(table.rows[0][4]).startswith("+0.350")  # of a method to a loss
    assert "Its difference to triplet is" in words(pages[-1][3])
    same = replace(row("losses", "aa-triplet"), cell=rows[1].cell)  # the cell of two rows counts once
    write_comparison([rows[1], same, rows[4]], found, range(2), execution)
    assert "runs\n4\n2 rows\n" in words(pages[-1][3])


def test_a_row_with_a_proxy_is_compared_with_each_of_its_controls():
    plain, proxied = row("losses", "triplet"), row("losses", "aa-triplet")
    controls = [replace(row("losses", "aa-triplet", f"aa-triplet-{name}"), control=name) for name in ("one", "two")]
    rows = [plain, proxied, *controls]
    maps = [[0.4, 0.5], [0.6, 0.7], [0.5, 0.6], [0.8, 0.9]]
    found = {of.cell.name: scores(of, values) for of, values in zip(rows, maps, strict=True)}
    table = proxy_table(rows, found, "about")
    assert [line[0] for line in table.rows] == ["aa-triplet"]
    differences = dict(zip(table.columns, table.rows[0], strict=True))
    starts = [str(value)[:6] for name, value in differences.items() if name.startswith("minus ")]
    assert starts == ["+0.200", "+0.100", "-0.200"]  # itself without the proxy, and the two controls
    assert proxy_table(rows[:2], found, "about") is None
    itself = [*rows[:3], replace(rows[3], cell=proxied.cell)]  # a control with the config of the row
    table = proxy_table(itself, found, "about")
    same = dict(zip(table.columns, table.rows[0], strict=True))
    assert same["minus two"] == ""
    assert "corrected for 2 comparisons" in " ".join(table.notes)
    plain = comparison_page.table_of(rows[:1], found, rows[0], "about")
    assert plain.columns == (
        "loss", "MAP audio-visual", "MAP visual-audio", "MAP mean", "difference to triplet", "train MAP", "epochs",
        "steps", "seconds", "parameters", "seeds",
    )  # fmt: skip
