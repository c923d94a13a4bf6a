"""Protocols with a bank need training and validation clips."""

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError
from tests.protocols.conftest import clips

BANKS = ["bank", "bank-expansion", "csls", "inverted-softmax"]


@pytest.mark.parametrize("protocol", BANKS)
def test_a_bank_is_of_training_clips_and_chosen_on_validation_clips_so_both_are_needed(model, protocol):
    none = clips("abc").select(np.arange(0))
    for train, valid, lacking in ((none, none, "train"), (clips("abc"), none, "valid"), (none, clips("abc"), "train")):
        with pytest.raises(InputError, match=f"protocol {protocol} needs {lacking} clips, but there are none"):
            aadml.evaluate(model, data=aadml.Splits(train, valid, clips("abc")), protocol=protocol)
    with pytest.raises(InputError, match=f"protocol {protocol} needs train clips"):
        aadml.evaluate(model, data=clips("abc"), protocol=protocol)
