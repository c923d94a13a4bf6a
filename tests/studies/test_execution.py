import pytest

from aadml.configuration.config import resolve
from aadml.configuration.files import read_yaml
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.execution import Execution, check_complete
from aadml.studies.job import Job


def test_shards_divide_the_runs(tmp_path):
    jobs = list(range(11))
    parts = [Execution(folder=tmp_path, shard=(i, 3)).part(jobs) for i in range(3)]
    assert sorted(job for part in parts for job in part) == jobs


def test_a_merge_names_what_is_missing(tmp_path):
    config = resolve(read_yaml("aadml") | {"data": "x.h5"})
    with pytest.raises(InputError, match=r"7 of 7 runs.*ave/a=0.*\.\.\."):
        check_complete([Job(tmp_path / "ave" / "runs" / f"a={n}", config) for n in range(7)])
    check_complete([])
