"""An error message is one printable line, and echoes long values shortened."""

import pytest

from aadml.feature_extraction.ground.errors import InputError, cause, one_line

LONG_COMMAND = f"no such index; build it by `aadml index SOURCE -o '{'a b' * 90}.db'`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("é ü 日本", "é ü 日本"),
        ("a\nb\x1b[31m\ud800", "a\\nb\\x1b[31m\\ud800"),
        (f"mode: '{'long ' * 600}' is not one", f"mode: '{('long ' * 600)[:56]}...{('long ' * 600)[-19:]}' is not one"),
        (f"/{'a' * 3000}: no such file", f"/{'a' * 56}...{'a' * 19}: no such file"),
        (LONG_COMMAND, LONG_COMMAND),
        (f"/{'a' * 200}: no such file", f"/{'a' * 200}: no such file"),
    ],
)
def test_unprintable_characters_are_escaped_and_long_values_shortened(text, expected):
    assert one_line(text) == expected
    assert str(InputError(text)) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError(" \n first \nsecond"), "first"),
        (ValueError("a" * 301), "a" * 300),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_the_cause_of_an_error_is_its_first_line(error, expected):
    assert cause(error) == expected
