"""Which rows a comparison is asked for."""

import pytest

from aadml.sweeps.compare import chosen
from feature_extraction.ground.errors import InputError

KNOWN = {"cca": 1, "dcca": 2, "random": 3}


@pytest.mark.parametrize("given", ["random, cca", ["random", "cca"], ("random,cca", "random")])
def test_rows_are_named_by_text_or_one_by_one_in_their_order(given):
    assert chosen(given, ("cca", "dcca"), KNOWN, "method") == ["random", "cca"]


def test_all_stands_for_everything_and_names_join_it():
    assert chosen("all", ("cca", "dcca"), KNOWN, "method") == ["cca", "dcca"]
    assert chosen(["random", "all"], ("cca", "dcca"), KNOWN, "method") == ["random", "cca", "dcca"]
    assert chosen(None, ("cca", "dcca"), KNOWN, "method") == []


def test_an_unknown_row_is_refused():
    with pytest.raises(InputError, match="no method 'ccaa'; did you mean 'cca'"):
        chosen(["ccaa"], (), KNOWN, "method")
