"""Every row of the audio-text tables, resolved, minimizes what the released code minimizes: value and gradient."""

import pytest
from certificates.audio_text import OBJECTIVES, as_drawn, objective_errors, strategy_errors
from certificates.certificate import read

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.configuration.overrides import with_setting
from aadml.feature_extraction.ground.options import schema
from aadml.methods import METHODS
from aadml.methods.audio_text.negative_sampling import STRATEGIES
from aadml.methods.method import Context
from aadml.model.files import build_method
from aadml.papers.audio_text import PAPER_TABLES, planned

EXACT = 1e-6
BASES = {
    "mei": ("mei_audiocaps", "mei_clotho", "audio_text"),
    "3cmlf": ("3cmlf_audiocaps", "3cmlf"),
    "xie": ("xie_clotho", "xie"),
}
assert BASES.keys() == PAPER_TABLES.keys()


def rows(table, *bases):
    return [
        pytest.param(row, config.values, id=f"{base}, {dataset}: {', '.join(row.cells)}")
        for base in bases
        for dataset in ("AudioCaps", "Clotho")
        for row, config in planned(table, starting_config(table, base), dataset)
    ]


def starting_config(table, base):
    """Return a config that names weights if the table has rows that need them; nothing is loaded."""
    weights = {} if table == "xie" else {"method.audio_weights": "ResNet38.pth"}
    return open_config(base).changed({"data": "clips.csv", **weights}).resolve()


NARROW = {
    "method.audio": "cnn10", "method.audio_width": 1, "method.audio_weights": "untrained", "method.text": "word2vec",
    "method.text_dimension": 12, "method.hidden": 4, "method.dimension": 12, "method.channels": 4,
}  # fmt: skip
"""What a row's networks are made small by; nothing of what it minimizes."""


def objective_of(values):
    """Build the method of a row's config, with small networks, and give what it minimizes."""
    known = schema(METHODS[resolve(values).method])
    for key, value in NARROW.items():
        if key.removeprefix("method.") in known:
            values = with_setting(values, key, value)
    config = resolve(values)
    context = Context({"audio": 0, "text": 0}, 30)
    return build_method(config.method, config.arguments(), config.training, context).learner.objective


@pytest.mark.parametrize(
    ("row", "values"),
    [*rows("mei", *BASES["mei"]), *rows("3cmlf", *BASES["3cmlf"])],
)
def test_a_row_of_mei_or_3cmlf_minimizes_the_released_objective(row, values, references):
    config = resolve(values)
    name = config.values.get("recipe") or config["loss"]["name"]
    assert name == (row.changes.get("loss") or "nt-xent")
    assert name in OBJECTIVES
    of = objective_of(values)
    assert max(objective_errors(of, name, read(references / "audio_text/mei_objectives.npz"))) < EXACT


@pytest.mark.parametrize(
    ("row", "values"),
    [*rows("xie", *BASES["xie"])],
)
def test_a_row_of_xie_minimizes_the_released_objective(row, values, references):
    config = resolve(values)
    strategy = config["method"]["strategy"]
    arrays = read(references / "audio_text/xie_strategies.npz")

    def make(margin):
        of = objective_of(with_setting(values, "loss.margin", margin))
        return as_drawn(of, arrays) if strategy == "random" else of

    assert max(strategy_errors(strategy, arrays, make)) < EXACT


def test_the_tables_have_a_row_for_every_objective_strategy_and_published_figure():
    found = {table: {row.values[0].cells for row in rows(table, *bases)} for table, bases in BASES.items()}
    settings = ("frozen", "fine-tuned", "frozen, batch 128")
    assert found["mei"] == {(setting, objective) for setting in settings for objective in OBJECTIVES}
    assert len(found["3cmlf"]) == 14
    assert len(found["xie"]) == len(STRATEGIES) == 8
