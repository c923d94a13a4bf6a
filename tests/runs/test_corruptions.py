"""Whatever becomes of a file of a run or a model, no result is silently another (`scripts/soak/corruptions`)."""

import pytest
from corruptions import FOLDERS, corruptions


@pytest.fixture(scope="module")
def tally(tmp_path_factory):
    return corruptions(tmp_path_factory.mktemp("corruptions"), 36, seed=1)


def test_every_command_refuses_in_one_line_or_gives_the_undamaged_result_and_removes_nothing(tally):
    assert not tally.failures
    assert {word for _, _, word in tally.outcomes} <= {"refused", "equal", "named", "unseen"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_damage_was_done_and_verify_named_most_of_it(tally, folder):
    assert tally.corruptions[folder] == 12
    assert tally.outcomes[folder, "verify", "named"] >= 3  # a third of the damages of a model changes nothing
