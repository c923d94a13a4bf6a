import os
import zipfile

from aadml.feature_extraction.ground.archives import is_archive


def test_zip_files_are_archives_and_other_files_are_not(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "text")
    (tmp_path / "text").write_text("text")
    os.mkfifo(tmp_path / "pipe")
    assert is_archive(tmp_path / "a.zip")
    assert not any(is_archive(tmp_path / name) for name in ("text", "pipe", "none", "."))
