import inspect
import re
from pathlib import Path

import pytest
import torch

from aadml.comparison import Comparison
from aadml.losses import LABEL_LOSSES, LOSSES
from aadml.objective.recipes import RECIPES
from feature_extraction.ground.options import schema

PAGE = Path(__file__).parents[2] / "docs" / "losses.md"
CONTEXT = {"dimension", "features", "classes"}


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


def section(page, name):
    return page.partition(f"\n### {name}\n")[2].partition("\n## ")[0].partition("\n### ")[0]


@pytest.mark.parametrize("name", LOSSES)
def test_the_page_gives_every_loss_its_options_defaults_and_example(page, name):
    text, entry = section(page, name), LOSSES[name]
    options = {key: str(value) for key, value in schema(entry).items() if key not in CONTEXT}
    assert dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", text, re.MULTILINE)) == options
    lines = [line.strip()[4:] for line in inspect.getdoc(entry).splitlines() if line.strip().startswith(">>>")]
    assert "\n".join(lines) in text
    assert all(word in text for word in ("```text", "Needs ", "By label: ", "By id: ", "From: "))


def test_the_page_names_every_recipe_and_label_loss_and_no_others(page):
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|", page.partition("\n## Names that combine")[2], re.MULTILINE)
    assert rows == [*RECIPES, *LABEL_LOSSES]
    for name, entry in LABEL_LOSSES.items():
        row = re.search(rf"^\| `{name}` \|.*$", page, re.MULTILINE)[0]
        assert all(f"`{key}` {value}" in row for key, value in schema(entry).items())


def test_the_first_example_of_the_page_runs(page):
    audio, visual, labels = torch.randn(6, 3, requires_grad=True), torch.randn(6, 3), torch.arange(6) % 2
    names = {"audio": audio, "visual": visual, "labels": labels}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    expected = LOSSES["supcon"](Comparison.of_labels(audio, visual, labels, labels))
    assert names["loss"].item() == pytest.approx(expected.total.mean().item())
    assert audio.grad.abs().sum() > 0
