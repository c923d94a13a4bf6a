"""The skeleton of a page: what is given is shown, never obeyed; tables and figures can be read by everyone."""

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground import figures
from aadml.reports import page
from aadml.reports.page import Fact, Section
from aadml.reports.tables import Table
from aadml.retrieval.significance import Spread
from tests.reports.parsed_html import HOSTILE, read


@given(st.text() | st.sampled_from(HOSTILE))
def test_any_text_is_shown_as_it_is(given):
    tags, words = read(f"<p>{page.text(given)}</p>")
    assert tags == [("p", {})]
    wanted = given.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")
    assert words == wanted
    assert read(f'<p title="{page.text(given)}">')[0] == [("p", {"title": wanted})]


def whole(name):
    """A page in every part of which a name stands."""
    table = page.table(Table((name, "MAP"), ((name, 0.5), (name, None)), caption=name))
    content = table + page.properties([(name, name)]) + page.details(name, name)
    summary = page.summary([Fact(name, name, name)], [name], verdict=name, warnings=[name]) + page.command(name)
    return page.document(name, name, summary, [Section(name, content, [name])])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_bring_no_tag_into_any_part(name):
    (tags, words), (plain, plain_words) = read(whole(name)), read(whole("plain"))
    written, expected = ([(tag, set(names) - {"class"}) for tag, names in page] for page in (tags, plain))
    assert written == expected  # but for classes, which depend on the lengths of names
    assert words.count(name) == plain_words.count("plain") > 10


def test_a_table_names_its_rows_and_columns_and_marks_what_is_best():
    rows = (("a", Spread(0.5, 0.1, 2), "1.5"), ("b", Spread(0.7, 0.1, 2), None))
    table = Table(("name", "MAP", "seconds"), rows, caption="what it is", best=("MAP",))
    html = page.table(table)
    assert html.count('scope="col"') == 3
    assert html.count('scope="row"') == 2
    assert re.search(r'<td data-label="MAP" class="[^"]*best[^"]*">0.700 ± 0.100', html)
    assert len(re.findall("best", html)) == 1
    assert html.count("number") == 3 + 3  # of `seconds` the header and two cells, of MAP likewise
    assert 'tabindex="0" role="region" aria-label="what it is"' in html
    assert "seconds" not in page.table(table, ["name", "MAP"])
    empty = page.table(Table(("name", "MAP", "steps"), (("a", 0.5, None), ("b", 0.2, ""))))
    assert "steps" not in empty
    assert empty.count("<td") == 2


WHOLE = (
    '<div class="scroll" tabindex="0" role="region" aria-label="what it is"><table class="results stacked"><thead><tr>'
    '<th scope="col">row</th><th scope="col" class="number">MAP</th><th scope="col">difference</th>'
    '<th scope="col" class="number">seconds</th><th scope="col">text</th></tr></thead><tbody>'
    f'<tr><th scope="row" data-label="row" class="short">{"a" * 20}</th>'
    '<td data-label="MAP" class="short number">0.500 ± 0.100</td><td data-label="difference">'
    '<span class="short">+0.012 [+0.004, +0.021]</span> <span class="short">(p = 0.030)*</span></td>'
    f'<td data-label="seconds" class="short number">1.5</td><td data-label="text">{"b " * 24}</td></tr>'
    f'<tr><th scope="row" data-label="row">{"a" * 21}</th><td data-label="MAP" class="short number best">0.700</td>'
    '<td data-label="difference" class="short">not tested</td><td data-label="seconds" class="short number">-12</td>'
    f'<td data-label="text" class="long">{"b " * 24}b</td></tr>'
    '<tr><th scope="row" data-label="row" class="short">3</th>'
    '<td data-label="MAP" class="short number">–</td><td data-label="difference" class="short">–</td>'
    '<td data-label="seconds" class="short number">x</td><td data-label="text" class="short">–</td></tr>'
    "</tbody></table></div>"
)


def test_a_table_in_full():
    columns = ("row", "MAP", "difference", "seconds", "none", "text")
    rows = (
        ("a" * 20, Spread(0.5, 0.1, 2), "+0.012 [+0.004, +0.021] (p = 0.030)*", "1.5", None, "b " * 24),
        ("a" * 21, 0.7, "not tested", "-12", "", "b " * 24 + "b"),
        ("3", None, None, "x", None, None),
    )
    assert page.table(Table(columns, rows, "what it is", best=("MAP",))) == WHOLE
    some = page.table(Table(columns, rows), ["text", "row", "unknown"])
    assert re.findall('scope="col"[^>]*>([^<]*)<', some) == ["text", "row"]
    assert 'aria-label="text"' in some


@pytest.mark.parametrize(
    ("row", "text", "is_stacked"),
    [("row", "y" * 20, False), ("row", "y" * 21, True), ("r" * 12, "y" * 19, False), ("r" * 13, "y" * 19, True),
     ("r" * 12, "y" * 9 + " " + "y" * 10, True), ("r" * 12, "y" * 10 + "-" + "y" * 10, False)],
)  # fmt: skip
def test_a_table_of_more_than_42_characters_in_its_longest_words_has_a_line_for_each_cell(row, text, is_stacked):
    assert ('"results stacked"' in page.table(Table(("", "a text", "MAP"), ((row, text, 0.123),)))) is is_stacked


def test_a_page_is_known_by_its_first_characters(tmp_path):
    for begin, is_page in (("<!DOCTYPE html><p>", True), ("<!doctype html>", True), ("<html>", False), ("", False)):
        (tmp_path / "file").write_text(begin)
        assert page.is_page(tmp_path / "file") is is_page


def test_a_table_wider_than_a_phone_has_a_line_for_each_cell_there():
    narrow = page.table(Table(("metric", "audio-visual", "visual-audio"), (("precision@10", 0.5, 0.4),)))
    assert "stacked" not in narrow
    names = page.table(Table(("k", "loss", "epochs", "steps", "seeds"), (("1", "aa-triplet", 3, 9, 2),)))
    assert "stacked" in names
    columns = ("row", *(f"metric {n}" for n in range(6)))
    wide = page.table(Table(columns, (("a", *[0.5] * 6),)))
    assert '<table class="results stacked">' in wide
    assert wide.count('data-label="metric 3"') == 1


def test_interval_and_p_of_a_difference_are_broken_into_no_more_than_two_lines():
    html = page.table(Table(("row", "difference"), (("a", "+0.012 [+0.004, +0.021] (p = 0.030)*"),)))
    assert '<span class="short">+0.012 [+0.004, +0.021]</span> <span class="short">(p = 0.030)*</span>' in html
    hostile = page.table(Table(("row", "difference"), (("a", "+1 [<b>] (<i>"),)))
    assert "<b>" not in hostile
    assert "<i>" not in hostile


def test_an_alarm_comes_before_verdict_and_facts():
    html = page.summary([Fact("MAP", "0.5")], ["a note"], verdict="Good.", alarm=["It failed.", "evidence"])
    places = [html.index(words) for words in ("It failed.", "evidence", "Good.", "0.5", "a note")]
    assert places == sorted(places)
    assert '<div class="alarm"><p class="verdict">It failed.</p><p>evidence</p></div>' in html


def test_a_part_without_content_is_left_out():
    html = page.document("title", "kind", "", [Section("vacant", "", ["a note"]), Section("full", "<p>x</p>")])
    assert "vacant" not in html
    assert "a note" not in html
    assert html.count("full") == 2  # the link and the heading
    assert html.count('part-2"') == 2  # the link and the part


def test_the_policy_allows_only_the_script_of_the_players():
    html = page.document("title", "kind", "", [], [("audio/mp4", "bWVkaWE=", "")])
    policy = re.search(r'Policy" content="([^"]*)"', html)[1]
    script = html.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert '[["audio/mp4", "bWVkaWE=", ""]]' in html
    without = page.document("title", "kind", "", [])
    assert "script-src" not in without
    assert "<script" not in without


def test_a_figure_takes_the_colors_of_the_page_and_keeps_its_ids_to_itself(drawn):
    html = page.drawing(drawn[0], 'a "figure"') + page.drawing(drawn[1], "another") + page.drawing(drawn[0], "alike")
    tags, _ = read(html)
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids)) > 0
    used = {value[1:] for _, a in tags for key, value in a.items() if key.endswith("href")}
    used |= set(re.findall(r"url\(#([^)]*)\)", html))
    assert used <= set(ids)
    assert ("svg", 'a "figure"') in [(tag, attributes.get("aria-label")) for tag, attributes in tags]
    for color in (figures.INK, figures.FAINT, figures.COLORS[0]):
        assert color not in html
    assert "var(--c0)" in html


def test_the_stylesheet_defines_the_colors_of_figures():
    colors = {"ink": figures.INK, "faint": figures.FAINT}
    colors |= {f"c{number}": color for number, color in enumerate(figures.COLORS)}
    for name, color in colors.items():
        assert page.STYLE.count(f"--{name}: #") == 2  # light and dark
        assert page.STYLE.count(f"--{name}: {color};") == 1
