"""A folder of 40 media files."""

import pytest


@pytest.fixture
def media(tmp_path):
    """Forty files, each of its own bytes, in two folders."""
    for number in range(40):
        path = tmp_path / "media" / f"{number}.mp4"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"clip {number}")
    return tmp_path
