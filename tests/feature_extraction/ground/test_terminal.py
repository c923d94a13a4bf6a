import pytest

from aadml.feature_extraction.ground.terminal import escaped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07 \x1b[31mred\x9b0m\x7f", "\\x1b]0;title\\x07 \\x1b[31mred\\x9b0m\\x7f"),
        ("a\nb\rc\x85d\u2028e", "a\\nb\\rc\\x85d\\u2028e"),
        ("\u202egpj.exe\u2066", "\\u202egpj.exe\\u2066"),
        ("\ud800\udc1b", "\\ud800\\udc1b"),
        ("\udcc2\udc9b31m", "\\x9b31m"),  # two bytes that together are a control character
    ],
)
def test_text_that_controls_a_terminal_is_escaped(text, shown):
    assert escaped(text) == shown


@pytest.mark.parametrize(
    "text", ["Hund, 犬\u3000猫, نه\u200cرو, 👩\u200d🚀, a\u00a0b, a\tb", "\udcff\udce9.wav", "", r"a\nb"]
)
def test_other_text_and_bytes_of_paths_are_unchanged(text):
    assert escaped(text) == text
