"""Division of epochs, descriptions of pairs and options of the curriculum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.audio_text.curriculum import Curriculum, divided
from aadml.methods.audio_text.options import CurriculumOptions
from aadml.methods.training.learner import Epoch

OPTIONS = {"shares": (10.0, 10.0, 30.0), "ancillary_epochs": 2, "mining": True, "dedupe": True}


def test_epochs_are_divided_by_the_shares_and_batches_built_once():
    plan = Curriculum(CurriculumOptions(**OPTIONS), batch=4, seed=0)
    assert [(s.name, s.epochs) for s in plan.stages(50)] == [("easy", 10), ("median", 10), ("hard", 30)]
    due = [(stage, n) for stage in ("easy", "median", "hard") for n in range(7) if plan.is_due(Epoch(stage, n, 10))]
    assert due == [("easy", 0)]


@given(st.integers(1, 400), st.lists(st.floats(0.01, 1e3), min_size=3, max_size=3))
def test_stages_together_have_the_epochs_that_were_asked_for(epochs, shares):
    counts = divided(epochs, shares)
    assert sum(counts) == max(epochs, 3)
    assert min(counts) >= 1
    wanted = [epochs * share / sum(shares) for share in shares]
    if min(wanted) >= 1:
        assert all(abs(count - part) < 1 + 1e-9 for count, part in zip(counts, wanted, strict=True))


def test_few_epochs_are_not_made_more():
    assert divided(3, (10, 10, 30)) == [1, 1, 1]
    assert divided(12, (10, 10, 30)) == [3, 2, 7]
    assert divided(1, (10, 10, 30)) == [1, 1, 1]


@pytest.mark.parametrize(
    "options", [{"pair": "audio"}, {"freeze_scope": "backbone"}, {"until": "end"}, {"shares": (1.0, 2.0)}]
)
def test_unknown_choices_are_refused(options):
    with pytest.raises(InputError, match=f"method.{next(iter(options))}"):
        checked_options(METHODS["3cmlf"], OptionValues(**options), "method")
