import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest
import torch

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.options import schema
from aadml.losses import LABEL_LOSSES, LOSSES
from aadml.objective.recipes import RECIPES

PAGE = Path(__file__).parents[2] / "docs" / "losses.md"


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


@cache
def option_tables():
    """The script that writes the tables."""
    place = importlib.util.spec_from_file_location("option_tables", PAGE.parents[1] / "scripts" / "option_tables.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def section(page, name):
    return page.partition(f"\n### {name}\n")[2].partition("\n## ")[0].partition("\n### ")[0]


@pytest.mark.parametrize("name", ["losses.md", "guide.md"])
def test_the_generated_parts_are_those_of_the_code(name):
    page = PAGE.with_name(name).read_text(encoding="utf-8")
    assert "<!-- generated: " in page
    assert page == option_tables().with_generated_parts(page)


def test_the_page_of_options_is_that_of_the_code():
    assert PAGE.with_name("options.md").read_text(encoding="utf-8") == option_tables().option_page()


@pytest.mark.parametrize("name", LOSSES)
def test_the_page_gives_every_loss_its_formula_source_and_example(page, name):
    text = section(page, name)
    assert option_tables().example(LOSSES[name]) in text
    assert "```text" in text
    (row,) = re.findall(rf"^\| {name} \|(.*)\|$", page.partition("## Which loss for which data")[2], re.MULTILINE)[:1]
    needs, by_label, by_id, source = (cell.strip() for cell in row.split(" | "))
    assert all((needs, by_label, by_id, source))


def test_the_training_loop_of_daml_has_its_indentation(page):
    (loop,) = re.findall(r"```text\n(for phase.*?)```", section(page, "daml"), re.DOTALL)
    (phase,) = ast.parse(loop).body
    assert [type(node) for node in (*phase.body, *phase.body[1].body)] == [ast.Expr, ast.For, ast.If, ast.If]


def test_the_page_names_every_recipe_and_label_loss_and_no_others(page):
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|", page.partition("\n## Names that combine")[2], re.MULTILINE)
    assert rows == [*RECIPES, *LABEL_LOSSES]
    for name, entry in LABEL_LOSSES.items():
        row = re.search(rf"^\| `{name}` \|.*$", page, re.MULTILINE)[0]
        assert all(f"`{key}` {option.default}" in row for key, option in schema(entry).items())


def test_the_first_example_of_the_page_runs(page):
    audio, visual, labels = torch.randn(6, 3, requires_grad=True), torch.randn(6, 3), torch.arange(6) % 2
    names = {"audio": audio, "visual": visual, "labels": labels}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    expected = LOSSES["supcon"](Comparison.of_labels(audio, visual, labels, labels))
    assert names["loss"].item() == pytest.approx(expected.total.mean().item())
    assert audio.grad.abs().sum() > 0
