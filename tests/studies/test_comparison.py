import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.studies.comparison import _wanted

OTHER_PROXY = "names a loss with another proxy; pass triplet, because every loss is run with and without AA proxies"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--losses", "triplet,xbm-triplet"], f"--losses xbm-triplet: {OTHER_PROXY}"),
        (["--methods", ","],
         "compare: no methods and no losses given; pass --methods all, --losses all, or names of methods or losses"),
        (["--methods", "cca", "--config", "x.yaml"],
         "--config x.yaml: applies only to losses, as each method has a config of its own; pass --losses as well"),
    ],
)  # fmt: skip
def test_a_comparison_of_nothing_or_with_a_config_for_nothing_is_refused(features, tmp_path, words, message):
    done = CliRunner().invoke(cli, ["compare", "--data", str(features), *words, "-o", str(tmp_path / "out")])
    assert str(done.exception) == message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("losses", ["triplet,aa-triplet", "aa-triplet", ["aa-triplet", "triplet"]])
def test_a_loss_may_have_the_prefix_of_the_anchor_aware_proxy(losses):
    assert _wanted(None, losses) == ([], ["triplet"])
