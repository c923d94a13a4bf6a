"""Every row of the audio-text tables, resolved, minimizes what the released code minimizes: value and gradient."""

import pytest
from certificates.audio_text import OBJECTIVES, as_drawn, objective_errors, strategy_errors
from certificates.certificate import read

from aadml.configuration.changes import with_setting
from aadml.configuration.config import resolve
from aadml.configuration.files import read_yaml
from aadml.methods.audio_text.negative_sampling import STRATEGIES
from aadml.objective.composition import Space, compose_objective
from aadml.reports.audio_text_tables import planned

EXACT = 1e-6


def rows(table, *bases):
    return [
        pytest.param(row, values, id=f"{base}, {dataset}: {', '.join(row.cells)}")
        for base in bases
        for dataset in ("AudioCaps", "Clotho")
        for row, values in planned(table, with_weights(read_yaml(base)) if table != "xie" else read_yaml(base), dataset)
    ]


def with_weights(values):
    """Name weights where the table has rows that want them; nothing is loaded."""
    return with_setting(values, "method.audio_weights", "ResNet38.pth")


def composed(config, selection):
    space = Space(("audio", "text"), dimension=12)
    return compose_objective(space, loss=config["loss"], selection=selection, directions=config["directions"])


@pytest.mark.parametrize(
    ("row", "values"),
    [*rows("mei", "mei_audiocaps", "mei_clotho", "audio_text"), *rows("3cmlf", "3cmlf", "3cmlf_sample")],
)
def test_a_row_of_mei_or_3cmlf_minimizes_the_released_objective(row, values, references):
    config = resolve(values)
    name = config.values.get("recipe") or config["loss"]["name"]
    assert name == (row.published.get("objective") or "nt-xent")
    assert name in OBJECTIVES
    of = composed(config, config["selection"])
    assert max(objective_errors(of, name, read(references / "audio_text/mei_objectives.npz"))) < EXACT


@pytest.mark.parametrize(
    ("row", "values"),
    [*rows("xie", "xie"), *rows("xie", "xie_sample")],
)
def test_a_row_of_xie_minimizes_the_released_objective(row, values, references):
    config = resolve(values)
    strategy = config["method"]["strategy"]
    arrays = read(references / "audio_text/xie_strategies.npz")

    def make(margin):
        loss = dict(config["loss"]) | {"margin": margin}
        of = composed_of(loss, config, strategy)
        return as_drawn(of, arrays) if strategy == "random" else of

    assert max(strategy_errors(strategy, arrays, make)) < EXACT


def composed_of(loss, config, strategy):
    return composed({"loss": loss, "directions": config["directions"]}, STRATEGIES[strategy])
