"""The documented line that watches a folder: an update only where something has changed."""

import os
import re
import subprocess
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/search.md"


def test_the_documented_line_updates_only_if_the_folder_has_changed(tmp_path):
    (line,) = re.findall(r"^  (touch new;.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    program = tmp_path / "bin" / "aadml"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@" >> calls\n[ ! -e broken ]\n')
    program.chmod(0o755)
    media, calls = tmp_path / "my_clips", tmp_path / "calls"
    (media / "sub").mkdir(parents=True)
    (media / "a.wav").write_text("a")

    def updates():
        calls.write_text("")
        environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment, check=False)
        return calls.read_text().count("index my_clips -o my.index\n")

    assert [updates(), updates()] == [1, 0]
    (tmp_path / "old.wav").write_text("b")
    os.utime(tmp_path / "old.wav", (0, 0))
    for change in (
        lambda: (tmp_path / "old.wav").rename(media / "sub" / "b.wav"),
        lambda: (media / "a.wav").write_text("c"),
        lambda: (media / "a.wav").rename(media / "c.wav"),
        lambda: (media / "c.wav").unlink(),
    ):
        change()
        assert [updates(), updates()] == [1, 0]
    (media / "d.wav").write_text("d")
    (tmp_path / "broken").write_text("")
    assert [updates(), updates()] == [1, 1]  # a file that cannot be read is tried again
    (tmp_path / "broken").unlink()
    assert [updates(), updates()] == [1, 0]
