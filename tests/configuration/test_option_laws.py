"""Laws of every option that a config reaches, over all tables: a new entry is covered the day it enters."""

import pytest

from aadml.configuration.config import FIXED, Common, resolve
from aadml.feature_extraction.backbones import EXTRACTORS
from aadml.feature_extraction.ground.options import REQUIRED, schema
from aadml.feature_extraction.ground.validation import checked
from aadml.methods import METHODS
from tests.option_leaves import is_bounded, leaves
from tests.sections import KINDS, UNNAMED

ENTRIES = {"common": Common, **UNNAMED} | FIXED | {f"method {n}": e for n, e in METHODS.items()}
ENTRIES |= {f"{section} {name}": entry for section, kind in KINDS.items() for name, entry in kind.table.items()}
ENTRIES |= {f"{section} {group.__name__}": group for section, kind in KINDS.items() for group in kind.groups}
ENTRIES |= {f"{modality} {name}": entry for modality, table in EXTRACTORS.items() for name, entry in table.items()}


@pytest.fixture(params=ENTRIES)
def options(request):
    return schema(ENTRIES[request.param]).values()


def test_every_number_has_two_bounds(options):
    for option in options:
        for kind, metadata in leaves(option.kind):
            if kind in (int, float):
                assert is_bounded(metadata), option.name


def test_every_option_has_a_sentence_and_a_default_that_is_possible(options):
    for option in options:
        assert option.sentence, option.name
        assert option.default is not REQUIRED, option.name
        assert checked(option.kind, option.default, option.name) == option.default


def test_what_a_search_tries_is_possible(options):
    for option in options:
        for value in option.tuning:
            assert checked(option.kind, value, option.name) == value


@pytest.mark.parametrize("method", METHODS)
def test_every_method_resolves_from_its_name_alone(method):
    once = resolve({"method": method})
    assert resolve(once.values).values == once.values
