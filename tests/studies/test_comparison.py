import pytest
from click.testing import CliRunner

from aadml.cli import cli

BOTH_WAYS = "every loss is run with and without AA proxies, and with --rivals beside what else could do their work"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--losses", "triplet,aa-triplet"], f"--losses aa-triplet: write triplet; {BOTH_WAYS}"),
        (["--losses", "xbm-triplet"], f"--losses xbm-triplet: write triplet; {BOTH_WAYS}"),
        (["--methods", ","], "compare: nothing to compare; give --methods all, --losses all, or names of them"),
        (["--methods", "cca", "--config", "x.yaml"],
         "--config x.yaml: applies to losses only, and each method has its own; pass --losses too"),
    ],
)  # fmt: skip
def test_a_comparison_of_nothing_or_with_a_config_for_nothing_is_refused(features, tmp_path, words, message):
    done = CliRunner().invoke(cli, ["compare", "--data", str(features), *words, "-o", str(tmp_path / "out")])
    assert str(done.exception) == message
    assert not (tmp_path / "out").exists()
