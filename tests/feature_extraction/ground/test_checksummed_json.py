"""Files that carry their checksum: what was sealed is read back, anything else is refused in one line."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground.checksummed_json import CHECKSUM, FileSum, read_sealed, seal, unseal
from aadml.feature_extraction.ground.errors import InputError

PLACE = Path("run/manifest.json")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.text(max_size=8).filter(lambda key: key != CHECKSUM), VALUES, max_size=5)


@given(OBJECTS)
def test_what_was_sealed_is_read_back(content):
    assert unseal(seal(content), PLACE) == content


@given(OBJECTS, st.data())
def test_one_other_byte_is_refused_or_says_the_same(content, data):
    sealed = bytearray(seal(content))
    position = data.draw(st.integers(0, len(sealed) - 1))
    sealed[position] ^= data.draw(st.integers(1, 255))
    read, said = outcome(bytes(sealed))
    # a change may be one of white space, or of the way a value is written
    assert read == content or (str(PLACE) in said and len(said.splitlines()) == 1)


def outcome(data):
    """What is read, or else what is said."""
    try:
        return unseal(data, PLACE), ""
    except InputError as error:
        return None, str(error)


@given(OBJECTS, st.data())
def test_a_part_of_the_file_is_refused(content, data):
    sealed = seal(content).rstrip()
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        unseal(sealed[: data.draw(st.integers(0, len(sealed) - 1))], PLACE)


@pytest.mark.parametrize("content", ["null", "[]", "3", '"text"', "{}", '{"checksum": null}', "[" * 100_000, "\ud800"])
def test_json_that_is_no_sealed_object_is_refused(content):
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        unseal(content.encode(errors="surrogatepass"), PLACE)


def test_a_value_that_was_edited_by_hand_is_refused():
    content = json.loads(seal({"generation": 3}))
    content["generation"] = 4
    with pytest.raises(InputError, match="its checksum is missing or does not match its content"):
        unseal(json.dumps(content).encode(), PLACE)


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_a_sum_knows_its_file_and_no_other(one, other):
    found = FileSum.of(one)
    found.check(one, PLACE)
    assert FileSum(**vars(found)) == found
    if one != other:
        with pytest.raises(InputError, match=r"manifest\.json is damaged"):
            found.check(other, PLACE)


def test_a_sealed_file_is_read_by_its_format_and_version(tmp_path):
    path = tmp_path / "sealed.json"
    path.write_bytes(seal({"format": "index", "version": 2, "ä": [1]}))
    assert path.read_text(encoding="utf-8").splitlines()[:2] == ["{", '  "format": "index",']
    assert '"ä"' in path.read_text(encoding="utf-8")
    assert read_sealed(path, "index", 2) == {"format": "index", "version": 2, "ä": [1]}
    for form, version in (("index", 3), ("run", 2)):
        with pytest.raises(InputError) as caught:
            read_sealed(path, form, version)
        assert str(caught.value) == (
            f"{path} has the format index version 2, but this version of aadml reads {form} version {version}; "
            "use the version of aadml that wrote the file"
        )
    with pytest.raises(FileNotFoundError):
        read_sealed(tmp_path / "none", "index", 2)
    with pytest.raises(NotADirectoryError):
        read_sealed(path / "inner", "index", 2)
    with pytest.raises(
        InputError,
        match=r" cannot be read \(Is a directory\); make the file readable, or restore the file from a copy$",
    ):
        read_sealed(tmp_path, "index", 2)
