import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.studies.comparison import _name, _wanted
from aadml.studies.comparison_rows import RowSettings
from aadml.studies.grid import Overrides

OTHER_PROXY = (
    "is a loss with another proxy, but every loss is run with and without anchor-aware proxies; pass --losses triplet"
)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--losses", "triplet,xbm-triplet"], f"--losses xbm-triplet {OTHER_PROXY}"),
        (["--methods", ","],
         "compare: there are no methods and no losses; pass --methods all, --losses all, or names instead of all"),
        (["--methods", "cca", "--config", "x.yaml"],
         "--config x.yaml applies only to losses, as each method has its own config; pass --losses as well, "
         "or leave out --config"),
    ],
)  # fmt: skip
def test_a_comparison_of_nothing_or_with_a_config_for_nothing_is_refused(features, tmp_path, words, message):
    done = CliRunner().invoke(cli, ["compare", "--data", str(features), *words, "-o", str(tmp_path / "out")])
    assert str(done.exception) == message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("losses", ["triplet,aa-triplet", "aa-triplet", ["aa-triplet", "triplet"]])
def test_a_loss_may_have_the_prefix_of_the_anchor_aware_proxy(losses):
    assert _wanted(None, losses, None) == ([], ["triplet"])


def test_folders_of_earlier_versions_keep_their_names():
    settings = RowSettings("x.h5", Overrides({"loss.margin": 0.5}), 3, None, with_controls=True, with_rivals=True)
    assert _name(["cca"], ["triplet"], settings, 1) == "methods-losses-2632d14c"
    assert _name([], ["triplet"], RowSettings("x.h5"), 2) == "losses-7e6e99a1"
