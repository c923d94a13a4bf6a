"""Checksums of blocks against their definition, and files with every kind of damage."""

import hashlib
import os
import random
from pathlib import Path

import pytest

from aadml.feature_extraction.ground import block_checksums
from aadml.feature_extraction.ground.block_checksums import (
    BLOCK,
    CheckedReader,
    append_checksums,
    checksums,
    has_checksums,
)
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError


def written(path, content):
    path.write_bytes(content)
    append_checksums(path)
    return path


def read(path):
    with CheckedReader(path) as reader:
        return reader.read()


def test_a_checksum_is_the_xxh3_of_a_block():
    published = {b"a": 0xE6C632B61E964E1F, b"abc": 0x78AF5F94892F3950}
    for text, expected in published.items():
        assert checksums(text).tolist() == [expected]
    block = random.Random(0).randbytes(BLOCK)
    assert checksums(block + block + b"abc").tolist() == [*checksums(block), *checksums(block), published[b"abc"]]
    assert not len(checksums(b""))


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 130 * BLOCK + 77])
def test_content_is_read_as_it_was_written(tmp_path, size):
    content = random.Random(size).randbytes(size)
    path = written(tmp_path / "file", content)
    assert path.read_bytes().startswith(content)
    assert has_checksums(path)
    assert read(path) == content


@pytest.mark.parametrize(("kept", "piece"), [(64, 64), (1, 2)])
def test_any_stretch_is_read_from_verified_blocks(tmp_path, monkeypatch, kept, piece):
    monkeypatch.setattr(block_checksums, "_CACHED", kept)
    monkeypatch.setattr(block_checksums, "_PIECE", piece)
    draw = random.Random(0)
    content = draw.randbytes(5 * BLOCK + 3)
    path = written(tmp_path / "file", content)
    with CheckedReader(path) as reader:
        for _ in range(200):
            start = draw.randrange(len(content) + 10)
            length = draw.randrange(3 * BLOCK)
            reader.seek(start)
            buffer = bytearray(length)
            assert buffer[: reader.readinto(buffer)] == content[start : start + length]
            assert reader._block.cache_info().currsize <= kept


def test_a_partial_read_verifies_its_blocks_alone(tmp_path):
    path = written(tmp_path / "file", bytes(4 * BLOCK))
    data = bytearray(path.read_bytes())
    data[2 * BLOCK + 5] = 1
    path.write_bytes(data)
    with CheckedReader(path) as reader:
        assert reader.readinto(bytearray(2 * BLOCK)) == 2 * BLOCK
        with pytest.raises(InputError, match="is damaged, as bytes 131,072 to 196,607"):
            reader.readinto(bytearray(1))
        assert "is damaged" in reader.failure
        reader.seek(0)
        with pytest.raises(InputError, match="is damaged, as bytes 131,072 to 196,607"):
            reader.readinto(bytearray(4 * BLOCK))


def test_every_changed_byte_is_found(tmp_path):
    content = random.Random(0).randbytes(100)
    whole = written(tmp_path / "file", content).read_bytes()
    for place in range(len(whole)):
        for flipped in (1, 128, 255):
            data = bytearray(whole)
            data[place] ^= flipped
            (tmp_path / "file").write_bytes(data)
            if not has_checksums(tmp_path / "file"):
                assert place >= len(whole) - 16  # the mark of the trailer
                continue
            with pytest.raises(InputError, match=r"is damaged|checksums are damaged"):
                read(tmp_path / "file")


def test_pairs_of_flipped_bits_are_found():
    draw = random.Random(1)
    block = draw.randbytes(BLOCK)
    expected = checksums(block)
    for _ in range(2000):
        data = bytearray(block)
        bit = draw.choice([0x80, 1])
        for place in draw.sample(range(3, BLOCK, 4), 2):
            data[place] ^= bit
        assert checksums(bytes(data)) != expected


@pytest.mark.parametrize("length", [0, 10, 55, 56, 100, BLOCK])
def test_a_cut_file_is_not_read(tmp_path, length):
    path = written(tmp_path / "file", bytes(BLOCK))
    path.write_bytes(path.read_bytes()[:length])
    assert not has_checksums(path)


def test_appended_bytes_hide_the_trailer_and_a_cut_start_damages_it(tmp_path):
    path = written(tmp_path / "file", bytes(BLOCK))
    whole = path.read_bytes()
    path.write_bytes(whole + b"more")
    assert not has_checksums(path)
    path.write_bytes(whole[8:])
    forged = tmp_path / "forged"
    sums = hashlib.sha256((5).to_bytes(8, "little")).digest()  # of no checksums
    forged.write_bytes(b"abcde" + sums + (5).to_bytes(8, "little") + whole[-16:])
    with pytest.raises(DamagedFileError, match="checksums are damaged"):
        read(forged)
    opened = sorted(Path("/proc/self/fd").iterdir())
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: the checksums are damaged; restore the file from a copy, or create it again"
    assert sorted(Path("/proc/self/fd").iterdir()) == opened


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK + 1, 2**64 - 1])
def test_a_damaged_size_is_found_without_reading_the_content(tmp_path, monkeypatch, size):
    path = written(tmp_path / "file", bytes(BLOCK))
    data = bytearray(path.read_bytes())
    data[-24:-16] = size.to_bytes(8, "little")
    path.write_bytes(data)
    lengths = []
    pread = os.pread
    monkeypatch.setattr(
        os, "pread", lambda handle, length, start: lengths.append(length) or pread(handle, length, start)
    )
    with pytest.raises(DamagedFileError, match="damaged"):
        read(path)
    assert max(lengths) < 100


def test_a_reader_is_a_file_whose_position_can_be_set(tmp_path):
    path = written(tmp_path / "file", b"0123456789")
    with CheckedReader(path) as reader:
        assert (reader.readable(), reader.seekable(), reader.writable()) == (True, True, False)
        assert [reader.seek(4), reader.read(2)] == [4, b"45"]
        assert [reader.seek(1, os.SEEK_CUR), reader.read(1)] == [7, b"7"]
        assert [reader.seek(-3, os.SEEK_END), reader.read()] == [7, b"789"]
        assert [reader.seek(20), reader.read()] == [20, b""]
    assert reader._file.closed


def test_the_first_damaged_block_is_reported_with_its_bytes(tmp_path):
    path = written(tmp_path / "file", bytes(2 * BLOCK + 3))
    data = bytearray(path.read_bytes())
    data[2 * BLOCK] = 1
    path.write_bytes(data)
    message = "bytes 131,072 to 131,074 do not match their checksum; restore the file from a copy, or create it again"
    with CheckedReader(path) as reader:
        reader.seek(5)
        with pytest.raises(DamagedFileError) as caught:
            reader.verify()
        assert str(caught.value) == reader.failure == f"{path} is damaged, as {message}"
        os.truncate(path, 10)
        reader.seek(0)
        with pytest.raises(DamagedFileError, match="bytes 10 to 131,071 do not"):
            reader.readinto(bytearray(2 * BLOCK))
        assert "131,074" in reader.failure
