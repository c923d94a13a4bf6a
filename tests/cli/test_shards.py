"""`--shard` and `--merge` of what trains many runs, as a user meets them."""

import csv

import pytest

SMALL = ["--set", "network.hidden=[8]", "--set", "training.batch=20", "--workers", "0", "--seeds", "1"]
ABLATE = ["ablate", "--over", "proxy.k=1,2", "--set", "loss=aa-triplet", "--max-epochs", "1", *SMALL]
COMPARE = ["compare", "--losses", "triplet,contrastive", "--no-controls", "--max-epochs", "1", *SMALL]


@pytest.mark.slow
@pytest.mark.parametrize("what", [ABLATE, COMPARE], ids=["ablate", "compare"])
def test_shards_that_are_merged_without_their_weights_give_the_table_of_one_call(aadml, features, tmp_path, what):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert aadml(*what, "--data", features, "-o", whole)[0] == 0
    for number in range(2):
        code, out, err = aadml(*what, "--data", features, "-o", parts, "--shard", f"{number}/2")
        assert (code, out.splitlines()[-1]) == (0, str(parts)), err
        assert f"shard {number}/2:" in err
        assert not (parts / "results.csv").exists()
        if number == 0:
            code, _, err = aadml(*what, "--data", features, "-o", parts, "--merge")
            assert code == 2
            assert "runs are not finished" in err
    for weights in parts.rglob("*.safetensors"):  # not copied here: the page is made of the small files
        weights.unlink()
    code, _, err = aadml(*what, "--data", features, "-o", parts, "--merge")
    assert code == 0, err
    assert [p.name for p in sorted((parts / "runs").iterdir())] == [p.name for p in sorted((whole / "runs").iterdir())]
    for table in whole.glob("*.csv"):
        assert without_seconds(parts / table.name) == without_seconds(table)


def without_seconds(table):
    with table.open(newline="") as file:
        return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--shard", "2/2"], "pass I/N"),
        (["--shard", "0/2", "--merge"], "pass only one option"),
        (["--shard", "0/2", "--trials", "3"], "leave out --shard 0/2"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(aadml, features, tmp_path, more, reason):
    code, _, err = aadml(*COMPARE, "--data", features, "-o", tmp_path / "out", *more)
    assert code == 2
    assert reason in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
