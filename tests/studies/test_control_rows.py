"""Controls and rivals of rows with an anchor-aware proxy."""

from aadml.configuration.config import resolve
from aadml.studies.control_rows import ALONE, NONE, RANDOM, controls


def test_a_loss_that_stands_alone_has_no_control_of_half_its_weight_or_none():
    config = resolve({"method": "pairs", "loss": "aa-nt-xent"})
    assert set(controls(config)) == {ALONE, RANDOM}
    assert {ALONE, RANDOM, NONE} < set(controls(resolve({"method": "aadml", "loss": "aa-triplet"})))
