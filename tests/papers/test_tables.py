import pytest

from aadml.configuration.config import resolve
from aadml.papers.tables import leaks_of
from aadml.studies.ablation_grid import collected, run_folder
from aadml.studies.grid import Cell
from aadml.studies.job import Job, work_off
from aadml.studies.sweep import SweepOutcome


@pytest.mark.parametrize("name", ["k--1_seed0", "k=1_seed=0"], ids=["this edition", "second edition"])
def test_leaks_of_runs_are_read_from_folders_of_both_editions(base, tmp_path, name):
    cell = Cell("k=1", resolve(base))
    (tmp_path / "runs" / name).mkdir(parents=True)
    job = Job(run_folder(tmp_path, cell, 0), cell.config.seeded(0), protocols=("legacy:partner",))
    assert job.folder.name == name
    job.folder.rmdir()
    assert work_off(job) == ""
    scores = collected([cell], [0], tmp_path, [SweepOutcome(job)])
    leaks = leaks_of(scores, [job], tmp_path)
    assert leaks["k=1"].keys() == {"legacy:partner"}
