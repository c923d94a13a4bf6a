"""YAML that could be misread is refused in one line that says where; what is written is read back as it was."""

import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.configuration import strict_yaml
from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.configuration.from_arguments import assemble
from aadml.feature_extraction.ground.errors import InputError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.characters(categories=["Ll"]), min_size=1, max_size=5), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("method: dcca\nmethod: cca\n", "line 2: method occurs twice, first in line 1"),
        ("proxy:\n  k: 3\n  k: 4\n", "line 3: proxy.k occurs twice"),
        ("a: &one [1]\nb: *one\n", "line 1: anchors and aliases"),
        ("a: &a [*a]\n", "line 1: anchors and aliases"),
        ("1: 2\n", "line 1: the top level has the key 1"),
        ("a: {true: 2}\n", "line 1: a has the key true"),
        ("? [a]\n: 1\n", "key .a list or mapping."),
        ("? \n: 1\n", "the key null"),
        ("a: !!python/object/apply:os.system ['true']\n", "line 1: tags .!!python/object"),
        ("a: 1\n---\nb: 2\n", "line 2: a second document"),
        ("[" * 3000, "nested mappings and lists"),
        ("{a: " * 3000, "nested mappings and lists"),
        ("a: b: c\n", "line 1: the text is not YAML"),
        ("a: [1\n", "not YAML"),
        ("a: -" + "9" * 5000, "5000 digits"),
        ('a: "\\0"\n', r"the string '.x00' contains NUL or a lone surrogate"),
        ('a: "\\ud800"\n', "lone surrogate"),
    ],
)
def test_what_can_be_misread_is_refused_with_its_line(text, words):
    with pytest.raises(InputError, match=words.replace("[", r"\[")) as error:
        strict_yaml.load(text)
    assert "\n" not in str(error.value)


def test_words_are_those_of_yaml_1_2():
    text = "[no, on, 010, 12:30, 5e-4, 0x10, 1_000, ~, null, true, 2020-01-01, '1', .5, -.inf, '']"
    expected = ["no", "on", 10, "12:30", 5e-4, "0x10", "1_000", None, None, True, "2020-01-01", "1", 0.5, -math.inf, ""]
    assert strict_yaml.load(text) == expected
    assert strict_yaml.load("-" + "9" * strict_yaml.LONGEST_NUMBER) == 1 - 10**strict_yaml.LONGEST_NUMBER


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(PLAIN)
def test_what_is_written_is_read_back_here_and_by_yaml_1_1(value):
    text = strict_yaml.dump(value, sort_keys=False, allow_unicode=True)
    assert strict_yaml.load(text) == value
    assert yaml.safe_load(text) == value


@settings(deadline=None, max_examples=300)
@given(st.text("aé:{}[],&*!|>%@`'\"#-?~ \n\t0.e", max_size=60) | st.text(max_size=40))
def test_any_text_is_read_or_refused_in_one_line(text):
    try:
        strict_yaml.load(text)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right, a traceback is not


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from(["method", "loss", "proxy", "training", "network", "tuning", "seed"]), PLAIN))
def test_any_mapping_is_resolved_or_refused_in_one_line(values):
    try:
        resolve(values)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right, a traceback is not


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"method: aadml\ntraining: {lr: \xff}\n", "c.yaml, line 2: the text is not UTF-8"),
        (b"a: 1\n" * 300_000, "more than 1048576 bytes"),
        (b"", "is empty; pass a config"),
        (b"- 1\n", "contains a value of type list; pass a config"),
        (b"method: aadml\n\nmethod: cca\n", "c.yaml, line 3: method occurs twice"),
    ],
)
def test_files_that_are_no_configs_are_refused_with_their_line(raw, words, tmp_path):
    (tmp_path / "c.yaml").write_bytes(raw)
    with pytest.raises(InputError, match=words):
        open_config(tmp_path / "c.yaml")


def test_a_wrong_value_is_named_with_file_line_and_key_unless_it_was_set_elsewhere(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("method: aadml\ntraining:\n  epochs: 3\n  batch: -5\n")
    with pytest.raises(InputError, match=r"mine.yaml, line 4: training.batch is -5; pass a whole number from 1 to"):
        assemble(config=str(path))
    with pytest.raises(InputError, match=r"^training.batch is 0"):
        assemble(config=str(path), settings=["training.batch=0"])
    assert assemble(config=str(path), settings=["training.batch=7"])["training"]["batch"] == 7


def test_a_section_without_a_name_has_that_of_its_default():
    values = open_config("aadml").values | {"loss": {"margin": 0.5}}
    assert resolve(values)["loss"]["name"] == "triplet"
    assert resolve(values)["loss"]["margin"] == 0.5
