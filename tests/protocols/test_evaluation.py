"""Names of protocols, joined and unknown."""

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import PROTOCOLS
from aadml.protocols.evaluation import protocols_of


@pytest.mark.parametrize("name", ["legacy:partnr", "inductive+legacy:partner", "bank+bank"])
def test_protocols_that_do_not_exist_or_do_not_join_are_refused(name):
    with pytest.raises(InputError):
        protocols_of(name)


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_nothing_is_joined_with_itself_and_an_unknown_name_is_answered_with_the_nearest(name):
    with pytest.raises(InputError, match="cannot be joined"):
        protocols_of(f"{name}+{name}")
    with pytest.raises(InputError, match=f"did you mean '{name}'"):
        protocols_of(f"{name}s")
