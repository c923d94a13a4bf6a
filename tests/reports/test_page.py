"""The skeleton of a page: what is given is shown, never obeyed; tables and figures can be read by everyone."""

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert [(tag, set(attributes)) for tag, attributes in tags] == [(tag, set(other)) for tag, other in plain]
    assert words.count(name) == plain_words.count("plain") > 10


def test_a_table_names_its_rows_and_columns_and_marks_what_is_best():
    rows = (("a", Spread(0.5, 0.1, 2), "1.5"), ("b", Spread(0.7, 0.1, 2), None))
    table = Table(("name", "MAP", "seconds"), rows, caption="what it is", best=("MAP",))
    html = page.table(table)
    assert html.count('scope="col"') == 3
    assert html.count('scope="row"') == 2
    assert re.search(r'<td class="[^"]*best[^"]*">0.700 ± 0.100', html)
    assert len(re.findall("best", html)) == 1
    assert html.count("number") == 3 + 3  # of `seconds` the header and two cells, of MAP likewise
    assert 'tabindex="0" role="region" aria-label="what it is"' in html
    assert "seconds" not in page.table(table, ["name", "MAP"])
    empty = page.table(Table(("name", "MAP", "steps"), (("a", 0.5, None), ("b", 0.2, ""))))
    assert "steps" not in empty
    assert empty.count("<td") == 2


def test_a_part_without_content_is_left_out():
    html = page.document("title", "kind", "", [Section("empty", "", ["a note"]), Section("full", "<p>x</p>")])
    assert "empty" not in html
    assert "a note" not in html
    assert html.count("full") == 2  # the link and the heading


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


figures = pytest.importorskip("aadml.reports.figures")


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
