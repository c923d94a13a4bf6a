"""`aadml audit`: steps on stderr, and addresses as data."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from aadml.cli import cli


def test_it_shows_its_steps_and_takes_addresses_as_they_are(features):
    fsspec = pytest.importorskip("fsspec", reason="the extra datasets is not installed")
    address = "memory://audited/clips.h5"
    with fsspec.open(address, "wb") as file:
        file.write(Path(features).read_bytes())
    done = CliRunner().invoke(cli, ["audit", "--data", address, "--command", "no-such-program {input} {output}"])
    assert done.stdout == ""
    assert "audit:   0% 0/17 [" in done.stderr
    assert "the command no-such-program cannot be started" in str(done.exception)
