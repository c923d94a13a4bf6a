import os
import struct
import zipfile

from aadml.feature_extraction.ground.archives import is_archive


def test_zip_files_are_archives_and_other_files_are_not(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "text")
    (tmp_path / "text").write_text("text")
    os.mkfifo(tmp_path / "pipe")
    assert is_archive(tmp_path / "a.zip")
    assert not any(is_archive(tmp_path / name) for name in ("text", "pipe", "none", "."))


def test_a_damaged_archive_is_an_archive(tmp_path):
    several_disks = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 2) + b"PK\5\6" + bytes(18)
    (tmp_path / "a.zip").write_bytes(several_disks)
    assert is_archive(tmp_path / "a.zip")
