import numpy as np
import pytest

from aadml.feature_extraction.backbones.word2vec import PAD, read_vectors, table, untrained_table, variants
from aadml.feature_extraction.ground.errors import InputError

WORDS = {"dog": [1.0, 0.5, -2.0], "New_York": [0.0, 1e-8, 3.5], "größe": [9.0, -0.0, 1.0], "10": [1.0, 2.0, 3.0]}


def binary(path, newline=b"\n", words=WORDS):
    body = b"".join(w.encode() + b" " + np.array(v, "<f4").tobytes() + newline for w, v in words.items())
    path.write_bytes(f"{len(words)} 3\n".encode() + body)
    return path


def text(path, header=True):
    lines = [f"{w} {' '.join(map(repr, v))}" for w, v in WORDS.items()]
    path.write_text("\n".join(([f"{len(WORDS)} 3"] if header else []) + lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "write",
    [binary, lambda p: binary(p, b""), text, lambda p: text(p, False)],
    ids=["binary", "binary without line ends", "text", "text without header"],
)
def test_every_layout_gives_the_same_vectors(tmp_path, write):
    found = read_vectors(write(tmp_path / "vectors"))
    assert set(found) == set(WORDS)
    for word, values in WORDS.items():
        np.testing.assert_array_equal(found[word], np.array(values, np.float32))


def test_only_the_words_asked_for_are_kept(tmp_path):
    assert set(read_vectors(binary(tmp_path / "v.bin"), {"dog", "cat"})) == {"dog"}


def test_bytes_of_a_value_that_look_like_a_space_or_a_line_end_do_not_confuse_the_reader(tmp_path):
    odd = np.frombuffer(b"\n  \n \n\n  \n  ", "<f4")
    found = read_vectors(binary(tmp_path / "v.bin", b"", {"a": odd, "b": [1.0, 2.0, 3.0]}))
    np.testing.assert_array_equal(found["a"], odd)
    np.testing.assert_array_equal(found["b"], [1.0, 2.0, 3.0])


def test_a_cut_off_or_malformed_file_is_refused_in_one_line(tmp_path):
    whole = binary(tmp_path / "v.bin").read_bytes()
    (tmp_path / "cut.bin").write_bytes(whole[:-5])
    (tmp_path / "short.txt").write_text("3 2\na 1 2\nb 3 4\n")
    (tmp_path / "uneven.txt").write_text("a 1 2\nb 3\n")
    (tmp_path / "words.txt").write_text("a 1 2\nb 3 x\n")
    for name in ("cut.bin", "short.txt", "uneven.txt", "words.txt", "absent.txt"):
        with pytest.raises(InputError, match=name):
            read_vectors(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"9" * 5000 + b" 3\na 1 2 3\n", "word 2 has 3 values instead of 1"),
        (b"9" * 5000 + b"\na 1 2 3\n", "word 1 has 0 values"),
        (b"1 4000000000000000000\nword " + bytes(40), "of 4,000,000,000,000,000,000 dimensions, but has only 67"),
        (b"4000000000 2\nword " + bytes(8), "states 4,000,000,000 words of 2 dimensions, but has only 26 bytes"),
        (b"1 2\nword " + np.array([1, np.nan], "<f4").tobytes(), "the vector of 'word' is not finite; download"),
        (b"a 1 inf\n", "the vector of 'a' is not finite"),
        (b"a 1 1e39\n", "the vector of 'a' is not finite"),
    ],
)  # fmt: skip
def test_a_header_or_a_value_that_no_file_can_have_is_refused_in_one_line(tmp_path, content, reason):
    (tmp_path / "v.bin").write_bytes(content)
    with pytest.raises(InputError, match=reason) as error:
        read_vectors(tmp_path / "v.bin")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def vectors(words, dimension=300, seed=7):
    draws = np.random.default_rng(seed).standard_normal((len(words), dimension)).astype(np.float32)
    return dict(zip(words, draws, strict=True))


def test_padding_is_zero_and_missing_words_share_one_unit_vector_nearly_orthogonal_to_all():
    known = vectors([f"w{i}" for i in range(2000)])
    made = table([*known, "zzz", "yyy"], known)
    assert made.words == ("<pad>", *sorted(known), "<missing>")
    assert not made.vectors[PAD].any()
    shared = made.vectors[-1]
    units = made.vectors[1:-1] / np.linalg.norm(made.vectors[1:-1], axis=1, keepdims=True)
    assert np.linalg.norm(shared) == pytest.approx(1, abs=1e-5)
    assert np.abs(units @ shared).max() <= 0.25
    for word, values in known.items():
        np.testing.assert_array_equal(made.vectors[made.words.index(word)], values)


def test_words_are_found_under_their_variants():
    known = vectors(["And", "AM", "colored", "ding_dong", "ticktock", "gray"])
    made = table(["and", "am", "coloured", "ding-dong", "tick-tock", "grey", "gone"], known)
    assert "gone" not in made.words
    np.testing.assert_array_equal(made.vectors[made.words.index("ding-dong")], known["ding_dong"])
    assert variants("four")[0] == "four"
    assert "for" not in variants("four")


def test_no_room_for_an_orthogonal_vector_or_no_known_word_is_said():
    with pytest.raises(InputError, match="nearly orthogonal"):
        table([f"w{i}" for i in range(50)], vectors([f"w{i}" for i in range(50)], dimension=2))
    with pytest.raises(InputError, match="none of the 1 words"):
        table(["dog"], {})


def test_untrained_vectors_do_not_depend_on_the_order_of_words():
    one, other = untrained_table(["b", "a"], dimension=8), untrained_table(["a", "b", "a"], dimension=8)
    assert one.words == other.words
    np.testing.assert_array_equal(one.vectors, other.vectors)


def test_the_spellings_of_a_word_are_looked_up_in_order():
    assert variants("co-operise-colour-grey") == (
        "co-operise-colour-grey", "Co-operise-colour-grey", "CO-OPERISE-COLOUR-GREY", "co_operise_colour_grey",
        "cooperisecolourgrey", "co-operise-color-grey", "co-operise-colour-gray",
    )  # fmt: skip
    assert variants("organised") == ("organised", "Organised", "ORGANISED", "organized")
    assert variants("our") == ("our", "Our", "OUR")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"2 1\nab \0\0\x80?", "is truncated in word 2 of 2; download the file again"),
        (b"1 1\nab \0\0\x80", "is truncated in word 1 of 1; download the file again"),
        (b"3 2\na 1 2\nb 3 4\n", "is truncated after word 2 of 3; download the file again"),
        (b"a 1 2\nb 3\n", "word 2 has 1 values instead of 2; pass a Word2Vec file"),
        (b"2 2\na 1 2\nb 3 4 5\n", "word 2 has 3 values instead of 2; pass a Word2Vec file"),
        (b"a\nb\n", "word 1 has 0 values instead of at least 1; pass a Word2Vec file"),
        (
            b"a 1 2\nb 3 x\n",
            r"word 2 has an invalid value \(could not convert string to float: b'x'\); pass a Word2Vec file",
        ),
    ],
)
def test_the_word_at_which_a_file_ends_or_errs_is_named(tmp_path, content, problem):
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_vectors(tmp_path / "v")


def test_the_first_vector_of_a_word_is_kept_and_random_vectors_of_a_seed_stay_the_same(tmp_path):
    (tmp_path / "v").write_text("a 1 2\na 3 4\n")
    assert read_vectors(tmp_path / "v")["a"].tolist() == [1, 2]
    drawn = untrained_table(["a"])
    assert drawn.words == ("<pad>", "a", "<missing>")
    assert drawn.vectors.shape == (3, 300)
    assert np.linalg.norm(drawn.vectors, axis=1).tolist() == pytest.approx([0, 1, 1], abs=1e-5)
    assert drawn.vectors[1, :3].tolist() == pytest.approx([0.0071275, -0.0074889, 0.0363050], abs=1e-6)
    assert untrained_table(["a"], seed=1).vectors[1, 0] != drawn.vectors[1, 0]
    assert table(["a"], {"a": np.ones(200, np.float32)}).vectors[2, :3].tolist() == pytest.approx(
        [0.0301341, -0.1426861, -0.1407600], abs=1e-6
    )
