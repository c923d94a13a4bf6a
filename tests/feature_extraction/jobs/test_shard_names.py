import re

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.shard_names import read_shard, shard_path, shard_paths


@pytest.mark.parametrize(
    ("output", "shard", "name"),
    [
        ("s.h5", (0, 1), "s.h5"),
        ("s.h5", (0, 3), "s.0-of-3.h5"),
        ("a/s.0.h5", (2, 12), "a/s.0.2-of-12.h5"),
        ("s.2-of-3.h5", (2, 3), "s.2-of-3.h5"),
        ("s", (1, 2), "s.1-of-2"),
    ],
)
def test_a_shard_has_its_number_in_its_name(output, shard, name):
    assert str(shard_path(output, shard)) == name


@pytest.mark.parametrize("shard", [(1, 3), (0, 4)])
def test_a_name_of_another_shard_is_refused(shard):
    with pytest.raises(InputError) as caught:
        shard_path("out/s.0-of-3.h5", shard)
    job = f"the job is shard {shard[0]}/{shard[1]}; pass out/s.h5, the name without the shard"
    assert str(caught.value) == f"out/s.0-of-3.h5 is the name of shard 0/3, but {job}"


def test_shards_are_found_by_the_name_of_the_job(tmp_path):
    names = [f"s.{index}-of-{count}.h5" for count in (3, 11) for index in range(count)]
    for name in [*names, "t.0-of-2.h5", "s.0-of-11.h5.failures.csv", "s.more.0-of-2.h5", "s.0-of-2.npz"]:
        (tmp_path / name).touch()
    wanted = [tmp_path / name for name in names]
    assert shard_paths([], tmp_path / "s.h5") == wanted
    assert shard_paths([tmp_path / "s.h5"], tmp_path / "out.h5") == wanted
    (tmp_path / "s.h5").touch()  # an older result is not a shard of itself
    assert shard_paths([], tmp_path / "s.h5") == wanted
    assert shard_paths([tmp_path / "t.0-of-2.h5", tmp_path / "t.h5"], "out.h5") == [tmp_path / "t.0-of-2.h5"] * 2


def test_a_name_without_shards_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=re.escape("the file does not exist, and there are no shards s.0-of-N.h5 beside it")
    ):
        shard_paths([tmp_path / "s.h5"], tmp_path / "s.h5")
    with pytest.raises(InputError, match="does not exist"):
        shard_paths([tmp_path / "none" / "s.h5"], "s.h5")
    (tmp_path / "s.h5").touch()
    with pytest.raises(InputError, match=re.escape(f"{tmp_path / 's.h5'}: there are no shards s.0-of-N.h5 beside it")):
        shard_paths([], tmp_path / "s.h5")


def test_a_shard_is_one_of_so_many():
    assert read_shard("2/3") == (2, 3)


@pytest.mark.parametrize("wrong", ["3/3", "a/3", "1", "-1/3", "1/0", "0/0", ""])
def test_what_is_no_shard_is_refused_with_what_is(wrong):
    with pytest.raises(InputError, match="pass I/N with I from 0 to N-1"):
        read_shard(wrong)
