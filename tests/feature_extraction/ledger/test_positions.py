from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ledger.positions import Positions


@given(st.lists(st.integers(1, 5), max_size=60), st.integers(1, 9))
def test_positions_are_those_of_a_dictionary_of_lists(keys, recent):
    """However often the arrays are sorted in between."""
    positions, wanted = Positions(recent), {}
    for place, key in enumerate(keys):
        positions.add(key, place)
        wanted.setdefault(key, []).insert(0, place)
        assert positions._count < max(recent, len(positions) // 8)  # most positions are in compact arrays
        assert {each: positions.of(each) for each in range(7)} == {each: wanted.get(each, []) for each in range(7)}
    assert list(positions.all()) == [(key, place) for place, key in enumerate(keys)]
    assert len(positions) == len(keys)
