import csv

from aadml.reports.tables import Table, as_json, comma_separated, latex, markdown, write_tables
from aadml.retrieval.significance import Spread

TABLE = Table(
    columns=("loss", "AVE audio→visual", "published", "runs"),
    rows=(
        ("triplet", Spread(0.41234, 0.01, 5), 0.418, 5),
        ("aa_triplet & co", Spread(0.7, float("nan"), 1), None, 1),
        ("a|b", None, float("nan"), 0),
    ),
    caption="MAP on 100% of AVE, protocol inductive.",
    notes=("Published numbers: protocol unstated.",),
    best=("AVE audio→visual",),
)


def test_markdown():
    assert markdown(TABLE) == (
        "MAP on 100% of AVE, protocol inductive.\n\n"
        "| loss | AVE audio→visual | published | runs |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| triplet | 0.412 ± 0.010 | 0.418 | 5 |\n"
        "| aa_triplet & co | **0.700** | – | 1 |\n"
        "| a\\|b | – | – | 0 |\n\n"
        "- Published numbers: protocol unstated.\n"
    )


def test_json_has_a_row_of_each_row_by_the_names_of_the_columns():
    first, second, third = as_json(TABLE)["rows"]
    assert first == {
        "loss": "triplet", "AVE audio→visual": {"mean": 0.41234, "sd": 0.01, "seeds": 5}, "published": 0.418, "runs": 5,
    }  # fmt: skip
    assert second["AVE audio→visual"] == {"mean": 0.7, "sd": None, "seeds": 1}
    assert third["AVE audio→visual"] is None
    assert {key: value for key, value in as_json(TABLE).items() if key != "rows"} == {
        "caption": "MAP on 100% of AVE, protocol inductive.", "notes": ("Published numbers: protocol unstated.",),
    }  # fmt: skip


def test_csv_has_full_precision_and_spreads_in_columns_of_their_own():
    rows = list(csv.reader(comma_separated(TABLE).splitlines()))
    assert rows[0] == ["loss", "AVE audio→visual", "AVE audio→visual sd", "AVE audio→visual n", "published", "runs"]
    assert rows[1] == ["triplet", "0.41234", "0.01", "5", "0.418", "5"]
    assert rows[2] == ["aa_triplet & co", "0.7", "", "1", "", "1"]
    assert rows[3] == ["a|b", "", "", "", "", "0"]


def test_latex_escapes_what_latex_would_read():
    text = latex(TABLE)
    assert r"\caption{MAP on 100\% of AVE, protocol inductive.}" in text
    assert r"\begin{tabular}{lrrr}" in text
    assert r"loss & AVE audio$\rightarrow$visual & published & runs \\" in text
    assert r"triplet & 0.412 $\pm$ 0.010 & 0.418 & 5 \\" in text
    assert r"aa\_triplet \& co & \textbf{0.700} & -- & 1 \\" in text
    assert text.count(r"\begin") == text.count(r"\end")


def body(table):
    return latex(table).split("\\midrule\n")[1].split("\\bottomrule")[0]


def test_latex_sets_the_signs_of_our_own_tables_in_any_engine():
    table = Table(("x",), (("+0.001 [-0.002, +0.004] (p < 0.001)*≈ | > 2",),), notes=("≈ is within ±0.01; p > 1",))
    assert r"(p $<$ 0.001)*$\approx$ $|$ $>$ 2" in body(table)
    assert r"$\approx$ is within $\pm$0.01; p $>$ 1" in latex(table)


def test_latex_takes_no_cell_for_an_option_of_the_end_of_the_row_above():
    text = body(Table(("network.hidden", "x"), (("[16]", 1), ("*", 2), ("[8, 4]", 3))))
    assert text == "{[}16] & 1 \\\\\n{*} & 2 \\\\\n{[}8, 4] & 3 \\\\\n"


def test_markdown_shows_names_and_obeys_none():
    text = markdown(Table(("x",), (("<b>&amp;",), ("a\\|b",)), caption="<u> c", notes=("<!-- n",)))
    assert "| \\<b>\\&amp; |" in text
    assert "| a\\\\\\|b |" in text
    assert text.startswith("\\<u> c\n")
    assert text.endswith("- \\<!-- n\n")


def test_figures_that_print_alike_are_best_together():
    table = Table(("x", "y"), (("a", 0.9001), ("b", 0.9), ("c", 0.8)), best=("y",))
    assert [table.is_best(i, 1) for i in range(3)] == [True, True, False]


def test_tables_are_written_beside_each_other(tmp_path):
    write_tables(TABLE, tmp_path / "deep" / "table.v2")
    names = ["table.v2.csv", "table.v2.md", "table.v2.tex"]
    assert sorted(file.name for file in (tmp_path / "deep").iterdir()) == names
    assert (tmp_path / "deep" / "table.v2.tex").read_text(encoding="utf-8") == latex(TABLE)
