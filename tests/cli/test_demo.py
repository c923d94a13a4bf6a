"""`aadml demo`: every command of the session runs, in its order, and what they leave stands where it is said."""

import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.search import Index


@pytest.mark.slow
def test_a_session_ends_with_a_page_and_an_index_and_may_be_repeated(tmp_path):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "first look"
    for runs in (1, 2):
        done = CliRunner().invoke(cli, ["demo", str(folder)], catch_exceptions=False)
        assert done.exit_code == 0
        assert f"$ aadml sample-data '{folder / 'clips'}'\n" in done.stdout
        commands = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("$ aadml ")]
        assert commands == ["sample-data", "extract", "train", "evaluate", "report", "index"]
        pages = list(folder.glob("runs/*/report.html"))
        assert len(pages) == runs
        assert any(str(page) in done.stdout for page in pages)
        assert done.stdout.endswith(f"aadml serve '{folder / 'clips.index'}'\n")
    clip = next((folder / "clips" / "clips").glob("*.mp4"))
    assert len(Index(folder / "clips.index").search(clip=clip, to="audio", k=3).hits) == 3


def test_a_command_that_fails_ends_the_session(tmp_path):
    (tmp_path / "clips").write_text("in the way")
    done = CliRunner().invoke(cli, ["demo", str(tmp_path)])
    assert done.exit_code != 0
    assert "extract" not in done.stdout
