import hashlib
import os

from aadml.feature_extraction.ground.file_content import content_of, stamp_of, text_stamp


def test_a_stamp_changes_with_its_file(tmp_path):
    path = tmp_path / "f"
    path.write_text("a")
    stamp = stamp_of(str(path))
    assert stamp == stamp_of(str(path))
    path.write_text("ab")
    assert stamp_of(str(path)) != stamp


def test_what_is_not_a_regular_file_has_no_stamp(tmp_path):
    assert stamp_of(str(tmp_path / "none")) is None
    assert stamp_of("a\0b") is None
    os.mkfifo(tmp_path / "pipe")
    assert stamp_of(str(tmp_path / "pipe")) == ()


def test_content_is_the_sha256_of_the_bytes(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 3_000_000)
    assert content_of(str(tmp_path / "f"), (1,)) == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert content_of(str(tmp_path / "none"), (1,)) == ""
    os.mkfifo(tmp_path / "pipe")
    assert content_of(str(tmp_path / "pipe"), ()) == hashlib.sha256(b"").hexdigest()


def test_equal_texts_have_equal_stamps():
    assert text_stamp("a") == text_stamp("a") != text_stamp("b")
