"""Division of epochs, descriptions of pairs and options of the curriculum."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.audio_text.curriculum import Curriculum, divided
from aadml.methods.audio_text.options import CurriculumOptions
from aadml.methods.training.learner import Epoch

OPTIONS = {"shares": (10.0, 10.0, 30.0), "ancillary_epochs": 2, "mining": True, "pair": "sum", "easy_builder": "auto",
           "hard_builder": "auto", "dedupe": True, "rebuild_every": 3, "freeze_scope": "encoder",
           "until": "hard"}  # fmt: skip


def test_epochs_are_divided_by_the_shares_and_batches_rebuilt_when_asked():
    plan = Curriculum(CurriculumOptions(**OPTIONS), batch=4, seed=0)
    assert [(s.name, s.epochs) for s in plan.stages(50)] == [("easy", 10), ("median", 10), ("hard", 30)]
    due = [(stage, n) for stage in ("easy", "median", "hard") for n in range(7) if plan.is_due(Epoch(stage, n, 10))]
    assert due == [("easy", 0), ("easy", 3), ("easy", 6), ("hard", 3), ("hard", 6)]


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


def test_a_pair_is_described_as_asked():
    audio, text = torch.eye(3)[:2], torch.eye(3)[1:]
    for pair, expected in {"audio": audio, "text": text, "concatenation": torch.cat([audio, text], 1)}.items():
        assert torch.equal(
            Curriculum(CurriculumOptions(**OPTIONS | {"pair": pair}), batch=2, seed=0).pair_vectors(audio, text),
            expected,
        )
    both = Curriculum(CurriculumOptions(**OPTIONS), batch=2, seed=0).pair_vectors(audio, text)
    torch.testing.assert_close(both, (audio + text) / 2**0.5)


@pytest.mark.parametrize(
    "options", [{"pair": "mean"}, {"freeze_scope": "all"}, {"until": "end"}, {"shares": (1.0, 2.0)}]
)
def test_unknown_choices_are_refused(options):
    with pytest.raises(InputError, match=f"method.{next(iter(options))}"):
        checked_options(METHODS["3cmlf"], options, "method")
