import pytest

from aadml.feature_extraction.ground.markdown import one_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a | b", r"a \| b"),
        ("a\n  b", "a b"),
        ("<b>", r"\<b>"),
        ("p < 0.001", "p < 0.001"),
        ("&amp; & so", r"\&amp; & so"),
        (r"a\*b", r"a\\*b"),
        (r"a\b", r"a\b"),
        ("![a](http://b) [c] (d)", r"![a\](http://b) [c] (d)"),
        ("\x1b[2K", r"\x1b[2K"),
        ("a\udcff", r"a\udcff"),
    ],
)
def test_markup_is_escaped_and_other_text_is_kept(text, expected):
    assert one_line(text) == expected
