"""The page of the plan: verdicts, power, and that every number on the shipped page is in the shipped CSV files."""

import csv
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import nct, t, ttest_rel

from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.significance import paired_t, seeds_and_clips
from aadml.studies.results import signed
from scripts.experiments.anchor_aware.answers import findings_of
from scripts.experiments.anchor_aware.clip_groups import group_table
from scripts.experiments.anchor_aware.contenders import (
    ANCHOR_AWARE,
    CONTENDERS,
    MEMORY,
    NO_METRIC,
    PARTNER,
    PLAIN,
    SUMS_ALONE,
)
from scripts.experiments.anchor_aware.finals import finals
from scripts.experiments.anchor_aware.fold import fold
from scripts.experiments.anchor_aware.hypotheses import with_few_labels, without_labels
from scripts.experiments.anchor_aware.ledger import Ledger, Row
from scripts.experiments.anchor_aware.page import PAGE, page_of, write_plan_page
from scripts.experiments.anchor_aware.r5 import NO_PROXY
from scripts.experiments.anchor_aware.r5 import STAGE as R5_STAGE
from scripts.experiments.anchor_aware.r5_answer import differences
from scripts.experiments.anchor_aware.sequential import sign_flip
from scripts.experiments.anchor_aware.sets import SHARED, SetFacts, drawn_name, is_drawn, keep_facts
from scripts.experiments.anchor_aware.shares import share_differences, slope_answer, slopes
from scripts.experiments.anchor_aware.shipped import ALONE, NEIGHBORS, few
from scripts.experiments.anchor_aware.stages import STAGES
from scripts.experiments.anchor_aware.statistics import (
    PRIMARY,
    Compared,
    by_look,
    corrected_flips,
    overall,
    power_of,
    verdict,
)
from scripts.experiments.anchor_aware.tables import clip_table, ends, gain, interval, part_table

PARTS = ("audio-visual", "visual-audio", "validation")
BUDGET = '{"training.epochs": 500}'
SHIPPED = Path(__file__).parents[3] / "docs" / "lab" / "experiments"


def fill(
    folder, shift, *, seeds=10, spread=0.004, stage="stage-2", methods=tuple(CONTENDERS), name="toy", options="{}"
):
    """Write a ledger of finalists whose mean MAP is 0.5 plus a shift by method."""
    generator, ledger = np.random.default_rng(0), Ledger((folder,))
    rows, queries = [], {}
    for seed in range(100, 100 + seeds):
        easy = generator.normal(0, 0.05, 40)
        for method in methods:
            precision = np.clip(0.5 + shift.get(method, 0.0) + easy + generator.normal(0, spread, 40), 0, 1).round(4)
            mean = float(precision.mean())
            row = Row(data_set=name, method=method, options=options, seed=seed, steps=700, epoch=3, epochs=100,
                      seconds=9.0, valid_map=0.6, train_map=0.9, test_map=mean, audio_visual=mean, visual_audio=mean,
                      chance=0.1, bank=mean + 0.01, label_graph=0.9, partner=0.95, commit="c0ffee")  # fmt: skip
            rows.append(row)
            queries[row.key] = precision
    ledger.add(stage, rows, queries)
    keep_facts(folder, {name: SetFacts(name, 30, 10, 40, 5, "ab")})
    return ledger


@pytest.mark.parametrize(
    ("shift", "options", "words"),
    [({ANCHOR_AWARE: 0.05}, {}, "AA is above the plain loss and above the memory"),
     ({ANCHOR_AWARE: 0.05, MEMORY: 0.05}, {}, "a memory helps, not AA"),
     ({ANCHOR_AWARE: -0.03}, {}, "AA does not help by more than 0.000"),
     ({}, {}, "AA does not help by more than 0.00"),
     ({}, {"spread": 0.4}, "undecided: a gain by AA of up to 0."),
     ({ANCHOR_AWARE: 0.05}, {"seeds": 9}, "no verdict: the first look is not complete"),
     ({}, {"seeds": 1}, "no verdict")],
)  # fmt: skip
def test_the_verdict_follows_the_rules_of_the_plan(tmp_path, shift, options, words):
    ledger = fill(tmp_path, shift, **options)
    assert verdict(by_look("toy", ledger)).startswith(words)
    assert words in page_of(tmp_path)


def compared_at(plain, memory, *, sd=0.004, seeds=10):
    """Build the primary comparisons of a set whose mean differences AA - plain and AA - XBM are exactly these."""
    noise = np.random.default_rng(0).normal(size=(2, seeds))
    noise = (noise - noise.mean(1, keepdims=True)) / noise.std(1, ddof=1, keepdims=True)
    above_plain, above_memory = (mean + sd * one for mean, one in zip((plain, memory), noise, strict=True))
    values = dict(zip(PRIMARY, (above_plain, above_memory, above_plain - above_memory), strict=True))
    return [
        Compared(pair, tuple(one), paired_t(one, np.zeros(seeds)), paired_t(one, np.zeros(seeds)), sign_flip(one))
        for pair, one in values.items()
    ]


SINGLY = 0.0098 / 0.01 * 0.004  # p = 0.013 at ten seeds: below a look's level alone, above it after Holm over two sets


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [((0.05, 0.05), (0.05, 0.05), "AA helps (one, two)"),
     ((0.05, 0.05), (0.001, 0.001), "AA helps (one)"),
     ((0.001, 0.001), (0.05, 0.05), "AA helps (two)"),
     ((SINGLY, 0.05), (0.05, 0.05), "AA helps (one, two)"),
     ((SINGLY, 0.05), (0.001, 0.05), "one: AA does not help by more than 0.007 (power to find 0.01: 1.00); two: AA"),
     ((0.05, SINGLY), (0.05, 0.001), "one: AA does not help by more than 0.05"),
     ((0.05, 0.05), (-0.001, 0.001),
      'not "AA helps", as aa-triplet - triplet is below zero on two (-0.001); one: AA does not help by more than 0.05'),
     ((0.05, 0.05), (0.001, -0.001),
      'not "AA helps", as aa-triplet - xbm-triplet is below zero on two (-0.001); one: AA does not help by more than'),
     ((0.05, 0.05), (-0.01, -0.001),
      'not "AA helps", as aa-triplet - triplet is below zero on two (-0.01) and aa-triplet - xbm-triplet is below'),
     ((0.016, 0.022), (0.002, -0.016),
      'not "AA helps", as aa-triplet - xbm-triplet is below zero on two (-0.016); one: AA does not help by more than '
      "0.019 (power to find 0.01: 1.00); two: a memory helps, not AA"),
     ((0.05, 0.001), (0.05, 0.001), "one: a memory helps, not AA; two: a memory helps, not AA"),
     ((0.001, 0.001), (0.001, 0.001), "one: AA does not help by more than 0.004 (power to find 0.01: 1.00); two: AA"),
     ((-0.05, -0.05), (-0.05, -0.05), "one: AA does not help by more than 0.000 (power to find 0.01: 1.00); two: AA"),
     ((0.0, -0.05), (0.0, 0.0), "one: a memory helps, not AA; two: AA does not help by more than 0.003")],
)  # fmt: skip
def test_the_verdict_on_both_sets_is_the_plans_rule_to_the_letter(one, two, words):
    assert overall({"one": compared_at(*one), "two": compared_at(*two)}).startswith(words)


def test_two_wide_intervals_leave_the_question_open():
    wide, narrow = compared_at(0.001, 0.001, sd=0.1), compared_at(0.001, 0.001)
    assert overall({"one": wide, "two": wide}) == "undecided"
    assert overall({"one": wide, "two": narrow}).startswith("one: AA does not help by more than 0.073 (power to find")
    above, below = compared_at(0.05, 0.05, sd=0.02), compared_at(0.02, -0.001, sd=0.02)
    assert re.fullmatch(r'not "AA helps", as .* on two \(-0.001\); undecided', overall({"one": above, "two": below}))
    memory = compared_at(0.02, -0.05, sd=0.02)
    assert overall({"one": wide, "two": memory}).endswith("; two: a memory helps, not AA")


def test_no_verdict_on_both_sets_stands_before_both_have_a_look():
    looked = compared_at(0.05, 0.05)
    assert overall({"one": looked, "two": ()}).startswith("open: ")
    assert overall({"one": looked, "two": compared_at(0.05, 0.05, seeds=9)}).startswith("open: ")


def test_a_comparison_is_scipys_t_and_the_tests_stand_on_the_seeds_of_the_last_look(tmp_path):
    ledger = fill(tmp_path, {ANCHOR_AWARE: 0.01}, seeds=13, spread=0.05)
    one = by_look("toy", ledger)[0]
    rows = finals("toy", ledger)
    first, second = ([rows[name][seed].test_map for seed in range(100, 110)] for name in (ANCHOR_AWARE, PLAIN))
    expected = ttest_rel(first, second)
    interval = expected.confidence_interval(1 - 0.0182)
    assert (one.over_seeds.p, one.at_look) == (pytest.approx(expected.pvalue), pytest.approx(tuple(interval), abs=1e-5))
    assert one.deviation == pytest.approx(np.std(np.subtract(first, second), ddof=1), abs=1e-6)
    assert "The look at 10 seeds; 3 more are finished and wait for the next look" in page_of(tmp_path)


@pytest.mark.parametrize(("true", "deviation", "count"), [(0.01, 0.02, 10), (0.02, 0.016, 30), (0.0, 0.02, 20)])
def test_power_is_that_of_the_noncentral_t(true, deviation, count):
    reach, shift = t.ppf(0.975, count - 1), true / deviation * np.sqrt(count)
    assert power_of(true, deviation, count) == pytest.approx(
        nct.sf(reach, count - 1, shift) + nct.cdf(-reach, count - 1, shift), abs=1e-6
    )
    generator = np.random.default_rng(0)
    found = generator.normal(true, deviation, (20_000, count))
    rate = np.mean(np.abs(found.mean(1)) > reach * found.std(1, ddof=1) / np.sqrt(count))
    assert power_of(true, deviation, count) == pytest.approx(rate, abs=0.015)


def test_power_is_one_where_nothing_varies_or_the_difference_is_far_off():
    assert power_of(0.01, 0.0, 10) == power_of(0.02, 1e-5, 10) == 1.0


def test_no_p_stands_on_the_page_before_the_first_look(tmp_path):
    fill(tmp_path, {ANCHOR_AWARE: 0.05}, seeds=4)
    page = page_of(tmp_path)
    assert "4 seeds, before the first look at 10: described, not tested." in page
    assert "| aa-triplet - triplet | 4 | +0.0" in page
    assert re.search(r"aa-triplet - triplet \| 4 .*\| – \| – \| – \|", page)
    assert "4 seeds; not tested" in page


def test_controls_and_the_other_protocols_stand_beside_the_contenders(tmp_path):
    fill(tmp_path, {ANCHOR_AWARE: -0.03})
    controls = ("aa-triplet, uniform mean of neighbors", "aa-triplet, no metric loss")
    fill(tmp_path, {controls[1]: 0.02}, stage="stage-3", methods=controls)
    page = page_of(tmp_path)
    assert re.search(r"\| aa-triplet, no metric loss \| 10 \| -0\.0[45]\d .*\| yes \|", page)
    assert re.search(r"\| bank \| 10 \| 0\.\d{3} ± 0\.\d{3} \|", page)
    assert "bank - inductive: +0.010" in page
    assert re.search(r"\| H3 \| Is it attention\? \| -0\.0\d\d \[", page)
    assert "| H6 | Does any reading of Equation 7 train under the paper's own sums? | not run |" in page
    assert "differences is found" not in page
    fill(tmp_path, dict.fromkeys(controls, -0.03), stage="stage-3", methods=controls)
    assert "None of the 2 differences is found after the correction" in page_of(tmp_path)


def test_a_reading_that_trains_under_sums_is_named_as_the_best_of_some(tmp_path):
    methods = ("R2, live", "R5, detached", NO_METRIC, SUMS_ALONE)
    fill(tmp_path, {"R2, live": 0.05, SUMS_ALONE: 0.2}, stage="readings-2", methods=methods)
    page = page_of(tmp_path)
    assert re.search(
        r"\| H6 \| .* \| R2, live, the best of 2: \+0\.05\d \[.*\], 10 seeds; yes: above no metric loss", page
    )
    assert re.search(r"\| R2, live - no metric loss \| 10 \| \+0\.05\d .*\| yes \|", page)
    fill(tmp_path, {}, stage="readings-2", methods=methods)
    assert "none found above no metric loss" in page_of(tmp_path)
    fill(tmp_path / "few", {"R2, live": 0.05}, stage="readings-2", methods=methods, seeds=4)
    assert "4 seeds; not tested" in page_of(tmp_path / "few")


def test_the_graph_without_labels_and_with_few_is_held_against_pairs(tmp_path):
    fill(tmp_path, {NEIGHBORS: 0.03}, stage="stage-6-pairs", methods=(ALONE, NEIGHBORS))
    several = [few(name, count) for name in (ALONE, NEIGHBORS) for count in (4, 12)]
    fill(tmp_path, {few(NEIGHBORS, 4): -0.04}, stage="stage-6-few-labels", methods=several)
    page = page_of(tmp_path)
    answer = (
        r"without labels: \+0\.0[23]\d \[.*\], 10 seeds; 4 labels a class: -0\.0[34]\d \[.*12 labels a class: [+-]0\.00"
    )
    assert re.search(answer, page)
    assert re.search(r"\| agreeing neighbors, 4 labels a class - pairs, 4 labels a class \| 10 \| -0\.0", page)
    assert "agreeing neighbors, 4 labels a class - pairs, 12 labels a class" not in page
    assert page.count("Chance: 0.100.") == 2


def test_slopes_over_the_shares_are_those_of_numpy(tmp_path):
    for share in SHARED:
        fill(tmp_path, {ANCHOR_AWARE: 0.1 * share}, stage="shares-2", methods=(PLAIN, ANCHOR_AWARE, PARTNER),
             name=drawn_name(share), seeds=8)  # fmt: skip
    ledger = Ledger((tmp_path,))
    aware, partner = slopes(ledger)
    rows = [finals(drawn_name(share), ledger, "shares-2") for share in SHARED]
    by_seed = [np.polyfit(SHARED, [own[ANCHOR_AWARE][seed].test_map - own[PLAIN][seed].test_map for own in rows], 1)[0]
               for seed in range(100, 108)]  # fmt: skip
    assert aware.over_seeds.mean == pytest.approx(np.mean(by_seed)) == pytest.approx(0.1, abs=0.02)
    assert (aware.seeds, aware.flip) == (8, pytest.approx(2 / 256))
    assert partner.flip > 0.01
    keep_facts(tmp_path, {"toy": SetFacts("toy", 30, 10, 40, 5, "ab")})
    page = page_of(tmp_path)
    assert (
        "| H9 | Where should AA help, if its idea is right? | on drawn sets, aa-triplet - triplet: slope +0.1" in page
    )
    assert re.search(r"\| aa-triplet - triplet \| 8 \| \+0\.\d{3} \| \[.*\] \| 0\.01\d \| yes \|", page)
    assert "| 0.75 | 8 | 0." in page
    assert "## synthetic AVE" not in page
    assert re.search(r"### A share of 0\.5\n\n.*\n.*\n\| triplet \| 8 \| 700 \| 3 \| 0\.600", page)


def test_methods_stand_beside_their_schedules_and_failures_are_named(tmp_path):
    ledger = fill(tmp_path, {}, stage="stage-5", methods=("cca", "dscmr"), seeds=3, options=BUDGET)
    lost = replace(ledger.rows("stage-5")[-1], test_map=None, failed="the loss became nan")
    ledger.add("stage-5", [lost], {})
    fill(tmp_path, {}, stage="stage-5-capped", methods=("dscmr",), seeds=3, options='{"training.epochs": 9}')
    closed = Row(data_set="toy", method="kcca", options=BUDGET, seed=100, valid_map=0.6, test_map=0.7)
    ledger.add("stage-5-capped", [closed], {})
    page = page_of(tmp_path)
    assert "### All methods at their own schedules" in page
    assert "| kcca |" not in page
    assert re.search(r"\| cca \| 3 \| 500 \| 100 \| 700 \| 3 \| 0\.600 .*\| 0\.900", page)
    assert re.search(r"\| dscmr \| 2 \| 500 \|", page)
    assert "Failed runs: dscmr: 1 (the loss became nan)." in page
    assert re.search(r"ended after 600 steps\n\n.*\n.*\n\| dscmr \| 3 \| 9 \|", page)


def test_a_control_that_is_the_chosen_training_itself_answers_its_question(tmp_path):
    ledger = fill(tmp_path, {})
    options = '{"proxy.attention": "mha", "proxy.reading": "R1"}'
    rows = [Row(data_set="toy", method=ANCHOR_AWARE, options=options, seed=seed, valid_map=0.5) for seed in (1, 2)]
    for stage, row in zip(("stage-1b", "stage-1c"), rows, strict=True):
        ledger.add(stage, [row], {})
    page = page_of(tmp_path)
    assert "| H4 | Is it the graph? | the same training as AA, not run: reading R1 makes attention an affine" in page
    assert "aa-triplet, affine map of the anchor: the same training as the chosen AA, not run (reading R1 makes" in page
    assert re.search(r"\| H3 \| Is it attention\? \| not run \|", page)
    assert "(10 seeds; AA is reading R1)" in page
    assert "Under R5 the values of a proxy are" in page
    assert "no proxy: `bank` uses attention without parameters" not in page
    for stage, row in zip(("stage-1b", "stage-1c"), rows, strict=True):
        ledger.add(stage, [replace(row, options=options.replace("R1", "R5"), valid_map=0.6)], {})
    assert "no proxy: `bank` uses attention without parameters" in page_of(tmp_path)


def test_trainings_to_the_last_step_stand_beside_those_that_were_stopped(tmp_path):
    fill(tmp_path, {}, seeds=2)
    fill(tmp_path, {}, seeds=1, stage="full")
    assert re.search(r"\| xbm-triplet \| 100 \| 700 \| 3 \| 0\.\d{3} \| 700 \| 3 \| 0\.\d{3} \|", page_of(tmp_path))


def test_a_seed_on_which_a_contender_failed_is_left_out_and_counted(tmp_path):
    ledger = fill(tmp_path, {}, seeds=11)
    lost = replace(ledger.rows("stage-2")[0], test_map=None, failed="broke")
    ledger.add("stage-2", [lost], {})
    assert "| 33 (1 failed) |" in page_of(tmp_path)
    assert len(by_look("toy", ledger)[0].values) == 10


def test_a_page_without_a_finished_run_says_so(tmp_path):
    keep_facts(tmp_path, {"corsmal": SetFacts("corsmal", 30, 10, 40, 5, "ab")})
    page = write_plan_page(tmp_path).read_text(encoding="utf-8")
    assert "- **corsmal**: no verdict: the first look is not complete (0 of its 10 seeds are finished)." in page
    assert "- **av_digits**: not run yet." in page
    assert "0 runs are finished" in page
    assert not list(tmp_path.glob("*.svg"))


def test_sets_that_the_plan_describes_are_not_called_undecided(tmp_path):
    fill(tmp_path, {}, name="mosi", seeds=5)
    fill(tmp_path, {}, name="again", stage="stage-5", seeds=1, options=BUDGET)
    for name in ("mosi", "again"):
        keep_facts(tmp_path, {name: SetFacts(name, 30, 10, 40, 5, "ab")})
    page = page_of(tmp_path)
    assert "- **mosi**: described, not tested (5 of the 5 seeds planned)." in page
    assert "- **again**: no contender was run, only what stands below." in page
    assert re.search(r"\| H9 \| [^|]* \| not run \| as left \|", page)


def test_figures_are_drawn_of_what_is_there(tmp_path):
    fill(tmp_path, {ANCHOR_AWARE: -0.03})
    page = write_plan_page(tmp_path).read_text(encoding="utf-8")
    for name in ("toy-map.svg", "toy-differences.svg"):
        assert f"({name})" in page
        assert (tmp_path / name).read_text().startswith("<svg")
    assert not (tmp_path / "shares.svg").exists()


def test_sets_stand_in_the_order_of_the_plan_and_figures_have_no_spaces(tmp_path):
    names = ("toy", "av_digits by speakers", "corsmal")
    for name in names:
        fill(tmp_path, {ANCHOR_AWARE: -0.03}, name=name, seeds=3)
    page = write_plan_page(tmp_path).read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE)[3:6] == [*reversed(names)]
    linked = re.findall(r"!\[[^]]*\]\(([^)]*)\)", page)
    assert len(linked) == 6
    assert all(" " not in name and (tmp_path / name).is_file() for name in linked)


def test_methods_and_shares_are_drawn_too(tmp_path):
    fill(tmp_path, {"dscmr": 0.2}, stage="stage-5", methods=("cca", "dscmr"), seeds=3, options=BUDGET)
    for share in SHARED[:2]:
        fill(tmp_path, {ANCHOR_AWARE: 0.1 * share}, stage="shares-2", methods=(PLAIN, ANCHOR_AWARE), seeds=3,
             name=drawn_name(share))  # fmt: skip
    lines = share_differences(Ledger((tmp_path,)))
    assert [place for place, _, _ in lines["aa-triplet - triplet"]] == list(SHARED[:2])
    page = write_plan_page(tmp_path).read_text(encoding="utf-8")
    assert slope_answer(Ledger((tmp_path,))) == "in part: 2 of 4 shares, see the table"
    for name in ("toy-methods.svg", "shares.svg"):
        assert f"({name})" in page
        assert (tmp_path / name).read_text().startswith("<svg")


def test_rows_that_were_finished_elsewhere_are_folded_in(tmp_path):
    fill(tmp_path / "whole", {ANCHOR_AWARE: -0.03})
    fill(tmp_path / "here", {ANCHOR_AWARE: -0.03}, seeds=4)
    fill(tmp_path / "there", {ANCHOR_AWARE: -0.03})
    page = fold(tmp_path / "here", [tmp_path / "there"])
    for name in ("stage-2.csv", "stage-2-queries.csv"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert page.read_text(encoding="utf-8") == page_of(tmp_path / "whole")
    keep_facts(tmp_path / "other", {"toy": SetFacts("toy", 31, 10, 40, 5, "cd")})
    with pytest.raises(InputError, match="toy is other data"):
        fold(tmp_path / "here", [tmp_path / "other"])


def shipped_stages():
    return [stage for stage in STAGES if (SHIPPED / f"{stage}.csv").is_file()]


def test_the_shipped_page_is_what_the_shipped_rows_say():
    page = page_of(SHIPPED)
    assert (SHIPPED / PAGE).read_text(encoding="utf-8") == page
    assert not re.search(r"-0\.0+\b", page)  # what is rounded to zero has no minus


@pytest.mark.slow
def test_every_run_is_on_the_shipped_page_and_a_changed_row_changes_it(tmp_path):
    for path in SHIPPED.glob("*.csv"):
        shutil.copy(path, tmp_path)
    ledger, shipped = Ledger((tmp_path,)), (SHIPPED / PAGE).read_text(encoding="utf-8")
    assert page_of(tmp_path) == shipped
    for stage in shipped_stages():
        row = ledger.rows(stage)[0]
        ledger.add(stage, [replace(row, valid_map=(row.valid_map or 0.0) + 0.1, seconds=9e4)], {})
        assert page_of(tmp_path) != shipped, stage
        ledger.add(stage, [row], {})
    assert page_of(tmp_path) == shipped


def test_means_on_the_shipped_page_are_those_of_the_shipped_rows():
    page, ledger = (SHIPPED / PAGE).read_text(encoding="utf-8"), Ledger((SHIPPED,))
    for stage in shipped_stages():
        for row in ledger.rows(stage):
            score = row.test_map if row.valid_map is None else row.valid_map  # what is solved at once takes no steps
            assert row.failed or score is not None, f"{stage}: {row.key} has neither figures nor a reason"
        counts = re.search(rf"\| {stage} \| [^|]* \| [^|]* \| (\d+)", page)
        assert counts is not None
        first = drawn_name(SHARED[0]) if is_drawn(ledger.rows(stage)[0].data_set) else "corsmal"
        assert int(counts[1]) == sum(row.data_set == first for row in ledger.rows(stage))
    for row in ledger.rows("stage-2"):
        precision = ledger.precisions("stage-2")[row.key]
        assert precision.mean() == pytest.approx(row.test_map, abs=1e-4)
        assert (row.audio_visual + row.visual_audio) / 2 == pytest.approx(row.test_map, abs=2e-6)


def score(stage, name, method, figure="test_map"):
    """Average a figure over the rows of a method, as the csv module reads them."""
    with (SHIPPED / f"{stage}.csv").open(newline="", encoding="utf-8") as file:
        values = [
            float(row[figure]) for row in csv.DictReader(file) if (row["data_set"], row["method"]) == (name, method)
        ]
    return np.mean(values)


def ranged(values, digits):
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def figures_on_aa():
    """Return what README and docs/lab/findings.md say in figures on AA, computed from the shipped rows."""
    ledger = Ledger((SHIPPED,))
    names = ("corsmal", "av_digits", "av_digits by speakers", "uci_digits_views", "mosi")
    found = {name: findings_of(name, ledger) for name in names}
    against_aa = {(name, one.pair[1]): one for name in names
                  for one in (*found[name].primary, *found[name].controls, *found[name].rivals)
                  if one.pair[0] == ANCHOR_AWARE}  # fmt: skip
    unlabelled = {(name, one.pair[0]): one for name in names for one in without_labels(name, ledger)}
    few_labels = {(name, one.pair[0]): one for name in names for one in with_few_labels(name, ledger)}
    above = {"AGAH": "agah", "TLCA": "tlca", "Video-Adviser-lite": "video-adviser-lite", "VAE-CCA": "vae-cca",
             "EICS": "eics"}  # fmt: skip
    plain, memory = ({name: gain(against_aa[name, other]) for name in names} for other in (PLAIN, MEMORY))
    yield f"MAP by {plain['corsmal']} on one of two sets (corsmal)"
    yield f"(on av_digits AA - XBM is {memory['av_digits']})"
    yield f"On corsmal AA is {plain['corsmal']} above the plain loss and {memory['corsmal']} above the memory"
    yield f"On av_digits it is {plain['av_digits']} from the plain loss"
    yield f"below the memory, {memory['av_digits']}"
    bound = overall({name: found[name].primary for name in ("corsmal", "av_digits")})
    yield re.search(r"does not help by more than 0\.\d{3}", bound)[0]
    parts = part_table(found["corsmal"].rows, found["corsmal"].seeds).rows[0][1:]
    yield ", ".join(f"{part} {cell}" for part, cell in zip(PARTS, parts, strict=True))
    seen, also_seen, unseen = (line[2] for line in group_table("corsmal", ledger, found["corsmal"].seeds).rows[:3])
    yield f"training clips ({seen[:6]}, {also_seen[:6]}), not for those of the third ({unseen})"
    own = plain["uci_digits_views"], memory["uci_digits_views"]
    yield f"(two views of one digit) AA is {own[0]} from the plain loss and {own[1]} from the memory"
    yield f"asks, {plain['av_digits by speakers']} and {memory['av_digits by speakers']}"
    yield f"above chance, {plain['mosi']} and {memory['mosi']}"
    alone, corrected = (ANCHOR_AWARE, "aa-triplet, without proxy"), corrected_flips(found["corsmal"].controls)
    yield f"no proxy AA is {gain(against_aa['corsmal', alone[1]])} (Holm {corrected[alone]:.3f})"
    without = differences(finals("corsmal", ledger, R5_STAGE), 40)[NO_PROXY]
    second = differences(finals("av_digits", ledger, R5_STAGE), 20)
    yield f"minus no proxy is {signed(second[NO_PROXY].mean)} {interval((second[NO_PROXY].low, second[NO_PROXY].high))}"
    blind = [-second[name].mean for name in ("shuffled values", "no keys", "convex shrinkage alone")]
    assert len({f"{value:.3f}" for value in blind}) == 1
    yield f"there, by {blind[0]:.3f} each"
    yield f"no proxy: {signed(without.mean)} {interval((without.low, without.high))}"
    yield f"no proxy is {signed(without.mean)} {interval((without.low, without.high))}"
    yield f"MAP without proxies is {score(R5_STAGE, 'corsmal', NO_PROXY):.3f}"
    yield f"and {score('stage-2', 'corsmal', PLAIN):.3f} with the options"
    yield f"AA ({score('stage-2', 'corsmal', ANCHOR_AWARE):.3f})"
    scores = {name: score("stage-5", "corsmal", method) for name, method in above.items()}
    assert min(scores.values()) > score("stage-2", "corsmal", ANCHOR_AWARE)
    yield from (f"{name} {value:.3f}" for name, value in scores.items())
    controls = {one.pair[1]: one.over_seeds.mean for one in found["corsmal"].controls}
    assert (len(controls), min(controls, key=controls.get), max(controls, key=controls.get)) == (
        8, "aa-triplet, random same-class neighbors", "aa-triplet, no metric loss",
    )  # fmt: skip
    yield f"plain ({score('stage-2', 'corsmal', PLAIN):.3f})"
    yield f"with a memory bank ({score('stage-2', 'corsmal', MEMORY):.3f})"
    yield f"by {min(controls.values()):.3f} (random neighbors of the class) to {max(controls.values()):.3f}"
    others = [one.over_seeds.mean for one in found["corsmal"].rivals if one.pair[1] != "proxy-anchor"]
    assert all(one.over_seeds.mean > 0 for one in found["corsmal"].rivals)
    yield f"lie {ranged(others, 3)} below"
    uci, corsmal = (
        [gain(unlabelled[name, one]) for one in (NEIGHBORS, "neighbors in either modality", "random neighbors")]
        for name in ("uci_digits_views", "corsmal")
    )
    yield f"by {uci[0]} on one of three sets, and neighbors in either view, which is exploratory, by {uci[1]}"
    yield f"are {uci[0]} above pairs alone"
    yield f"are {uci[1]} above, and random clips in their places differ by {uci[2]}"
    yield f"On corsmal they are {corsmal[0]} and {corsmal[1]}"
    yield f"cost {-unlabelled['uci_digits_views', 'AA proxies'].over_seeds.mean:.3f}"
    most = max(one.over_seeds.mean for (_, method), one in few_labels.items() if method.startswith(NEIGHBORS))
    yield f"({signed(most)} at most)"
    alone = [-few_labels["uci_digits_views", few("labels alone", count)].over_seeds.mean for count in (4, 12)]
    yield f"are {ranged(alone, 2)} above labels alone"
    by_share = [f"{value:+.3f}" for _, value, _ in share_differences(ledger)["aa-triplet - triplet"]]
    yield f"is {', '.join(by_share[:3])} and {by_share[3]}"
    yield from (f"{signed(one.over_seeds.mean)} {ends(one.over_seeds)}" for one in slopes(ledger))
    yield f"{score('stage-5', 'corsmal', 'aadml'):.2f} ± 0.04"
    yield f"CCA has {score('stage-5', 'corsmal', 'c-cca'):.2f}"
    again = {one: score("stage-5", "av_digits extracted again", one) for one in
             ("eics", "vae-cca", "dscmr", "cctl", "agah", "tlca", "video-adviser-lite", "aadml", "kcca")}  # fmt: skip
    yield f"EICS has {again['eics']:.2f}"
    yield f"Video-Adviser-lite {ranged([again[one] for one in list(again)[1:7]], 2)}"
    yield f"`aadml` {again['aadml']:.2f} and kernel CCA, a closed form that takes two seconds, {again['kcca']:.2f}"
    capped = [score("stage-5-capped", "av_digits extracted again", one) for one in ("aadml", "agah")]
    yield f"`aadml` has {capped[0]:.2f} and AGAH its {capped[1]:.2f}"


# Of no row of docs/lab/experiments: the margin of equivalence, held-out sets, the scripts influence and power.
ELSEWHERE = {
    "README.md": ["by about 0.005 on two"],
    "docs/lab/findings.md": ["equal within 0.01", "0.81 to 0.87 of the influence", "which are 0.83 of these",
                         "share 0, 0.25, 0.5 or 0.75", "slope of 0.05 three times"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "begin", "end", "least"),
    [("README.md", "## Results", "## Why trust it", 9),
     ("docs/lab/findings.md", "# Findings", "### Held-out sets", 30)],
)  # fmt: skip
def test_every_figure_on_aa_is_of_the_shipped_rows(place, begin, end, least):
    text = (SHIPPED.parents[2] / place).read_text(encoding="utf-8")
    text = " ".join(text[text.index(begin) : text.index(end)].split())
    cited = [figure for figure in figures_on_aa() if figure in text]
    assert len(cited) >= least
    for figure in [*ELSEWHERE[place], *sorted(cited, key=len, reverse=True)]:
        assert figure in text
        text = text.replace(figure, "")
    assert not re.findall(r".{30}\d\.\d.{20}", text)


def test_rows_of_different_test_sets_are_refused_with_a_reason(tmp_path):
    fill(tmp_path, {})
    ledger = Ledger((tmp_path,))
    key, values = next(iter(ledger.precisions("stage-2").items()))
    ledger.add("stage-2", [], {key: values[:-1]})
    with pytest.raises(InputError, match=r"toy: the rows of .* are of different test sets, of 39 and 40 queries"):
        write_plan_page(tmp_path)


def test_differences_by_direction_are_paired_by_seed():
    generator = np.random.default_rng(0)
    scores = generator.random((3, 6, 2))
    rows = {
        method: {seed: Row(data_set="toy", method=method, options="{}", seed=seed, audio_visual=float(one[0]),
                           visual_audio=float(one[1])) for seed, one in enumerate(values)}
        for method, values in zip(CONTENDERS, scores, strict=True)
    }  # fmt: skip
    table = part_table(rows, range(6))
    order = list(CONTENDERS)
    for line, (first, second) in zip(table.rows, PRIMARY, strict=True):
        for cell, part in zip(line[1:3], (0, 1), strict=True):
            found = ttest_rel(scores[order.index(first), :, part], scores[order.index(second), :, part])
            low, high = found.confidence_interval()
            mean = (low + high) / 2
            assert cell == f"{signed(mean)} [{signed(low)}, {signed(high)}]"
        assert line[3] is None


def test_differences_are_given_by_the_groups_of_clips_csv(tmp_path):
    ledger, draw = Ledger((tmp_path,)), np.random.default_rng(0)
    scores = {method: draw.random((3, 4)) for method in CONTENDERS}
    for method, values in scores.items():
        rows = [Row(data_set="toy", method=method, options="{}", seed=seed, test_map=0.5) for seed in range(3)]
        ledger.add("stage-2", rows, {row.key: np.round(values[row.seed], 4) for row in rows})
    assert group_table("toy", ledger, [0, 1, 2]).rows == ()
    (tmp_path / "clips.csv").write_text(
        "data_set,clip,person,container\ntoy,a,x,1\ntoy,b,y,1\nother,q,x,1\ntoy,c,x,2\ntoy,d,x,2\n", encoding="utf-8"
    )
    found = group_table("toy", ledger, [0, 1, 2])
    assert [line[:2] for line in found.rows] == [
        ("person x", 3), ("person y", 1), ("container 1", 2), ("container 2", 2)
    ]  # fmt: skip
    expected = np.mean(
        [scores["aa-triplet"][seed][i] - scores["triplet"][seed][i] for seed in range(3) for i in (0, 1)]
    )
    assert str(found.rows[2][2]).startswith(f"{expected:+.4f}"[:6])
    (tmp_path / "clips.csv").write_text("data_set,clip,person,container\ntoy,a,x,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="toy has 1 clips, but rows of 4 queries"):
        group_table("toy", ledger, [0, 1, 2])


def test_clips_in_both_roles_stand_beside_the_planned_intervals_for_the_seeds_that_have_them(tmp_path):
    ledger, draw = Ledger((tmp_path,)), np.random.default_rng(0)
    values = {}
    for method in CONTENDERS:
        rows = [Row(data_set="toy", method=method, options="{}", seed=seed, test_map=0.5) for seed in range(5)]
        values[method] = np.round(draw.normal(0.5, 0.1, (5, 12)), 4)
        own = {row.key: values[method][row.seed] for row in rows if method != MEMORY or row.seed < 1}
        ledger.add("stage-2", rows, {}, own)
    (line,) = clip_table("toy", ledger, range(5)).rows
    expected = seeds_and_clips(values[ANCHOR_AWARE], values[PLAIN])
    pair = (PLAIN, MEMORY)
    assert clip_table("toy", ledger, range(5), [pair]).rows == ()
    ledger.add("stage-2", [], {}, {replace(row.key, seed=3): values[MEMORY][3] for row in rows[:1]})
    (partial,) = clip_table("toy", ledger, range(5), [pair]).rows
    two = seeds_and_clips(values[PLAIN][[0, 3]], values[MEMORY][[0, 3]])
    assert partial[:4] == ("triplet - xbm-triplet", 2, 12, signed(two.mean))
    assert line[:3] == ("aa-triplet - triplet", 5, 12)
    assert line[3:5] == (signed(expected.mean), ends(expected))
