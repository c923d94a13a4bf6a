import pytest

from aadml.configuration.files import open_config
from aadml.papers.fidelity import FIDELITY
from aadml.papers.rows import LEAKS, paper_runs
from aadml.reports.published import PAPER
from aadml.runs.data import with_absolute_paths
from aadml.studies.comparison_rows import RowSettings, published_methods
from aadml.studies.grid import Overrides


@pytest.fixture(scope="module")
def runs():
    def laid_out(name):
        shared = RowSettings("x.h5", config=f"aadml_{name}", with_controls=False)
        return paper_runs(name, shared, shorten=lambda config: config, draws={})

    return {name: laid_out(name) for name in ("vegas", "ave")}


def test_every_row_of_the_papers_tables_is_there(runs):
    for name, one in runs.items():
        assert [row.item for row in one.losses] == list(PAPER.published["losses"])
        assert [row.item for row in one.methods] == published_methods()
        assert len(one.losses) == 23
        batch = {"vegas": 400, "ave": 200}[name]
        assert {row.cell.config.training.batch for row in one.losses} == {batch}
        assert {row.cell.config.training.epochs for row in one.losses} == {400}


def test_tables_and_figures_share_their_runs(runs, tmp_path):
    one = runs["ave"]
    by_loss = {row.item: row.cell for row in one.losses}
    assert [row.cell for row in one.methods if row.item == "aadml"] == [by_loss["aa-triplet"]]
    best = {loss: one.neighbors[loss][k] for loss, k in PAPER.best_k.items()}
    assert one.curves == {loss: by_loss[loss] for loss in one.curves}
    assert best == {loss: cell for loss, cell in one.curves.items() if loss in PAPER.best_k}
    assert one.curves.keys() == {loss.removeprefix(prefix) for loss in PAPER.best_k for prefix in ("", "aa-")}
    assert {cell.config.training.train_map for cell in one.curves.values()} == {1}
    assert {len(cells) for cells in one.neighbors.values()} == {7}
    everything = one.jobs(list(PAPER.parts), range(5), tmp_path)
    assert len({job.folder for job in everything}) == len(everything) == 5 * (20 - 1 + 23 + 3 * 6 + 4 * 7)
    assert len({job.config.yaml() for job in everything}) == len(everything)


def test_the_log_of_a_run_does_not_depend_on_the_selected_parts(runs, tmp_path):
    one = runs["ave"]
    whole = {job.folder: job for job in one.jobs(list(PAPER.parts), range(1), tmp_path)}
    for part in PAPER.parts:
        for job in one.jobs([part], range(1), tmp_path):
            assert whole[job.folder] == job
    assert {job.protocols for job in one.jobs(["table-3"], range(1), tmp_path)} == {LEAKS}
    assert {job.diagnosis for job in one.jobs(["figure-5"], range(1), tmp_path)} == {1}
    for job in one.jobs(["table-1"], range(1), tmp_path):
        epochs, watched = (
            job.config.training.epochs,
            job.config == with_absolute_paths(one.curves["aa-triplet"].config.seeded(0)),
        )
        assert job.diagnosis == (
            1 if watched else {0: 1, 60: 1, 80: 2, 200: 5, 400: 10}.get(epochs, max(1, epochs // 40))
        )
    assert one.jobs(["table-2"], range(1), tmp_path) == []
    assert (
        tuple(
            f"legacy:{name}"
            for name in ("label-graph", "batch-attention", "partner", "running-map", "test-scaling", "drop-last")
        )
        == LEAKS
    )


def test_settings_of_the_user_replace_those_of_the_paper():
    changed = {"proxy.k": 5, "training.train_map": 7, "training.batch": 50}
    shared = RowSettings("x.h5", Overrides(changed), config="aadml_ave", with_controls=False)
    one = paper_runs("ave", shared, shorten=lambda config: config, draws={})
    trained = [row.cell.config for row in (*one.losses, *one.readings)]
    assert {(config.training.train_map, config.training.batch) for config in trained} == {(7, 50)}
    assert {row.cell.config["proxy"]["k"] for row in one.losses if row.item.startswith("aa-")} == {5}


def test_readings_of_equation_7_are_their_presets_with_the_batch_of_the_data_set(runs, tmp_path):
    for data_set, tables in (("vegas", ("table-1", "table-2")), ("ave", ("table-1", "table-3"))):
        one = runs[data_set]
        assert [row.item for row in one.readings] == list(FIDELITY.readings)
        assert one.readings[0].cell == one.curves["aa-triplet"], "aadml is the reading R6"
        for row in one.readings[1:]:
            batch = one.curves["aa-triplet"].config.training.batch
            preset = open_config(row.item.replace("-", "_"))
            assert row.cell.config == Overrides({"training.batch": batch, "data": "x.h5"}).applied(preset)
            assert one.neighbors[row.item][3] == row.cell
        for part in tables:
            assert {row.cell.name for row in one.readings} <= {cell.name for cell in one.cells(part)}


def test_every_published_row_says_what_it_is():
    for table, rows in PAPER.published.items():
        described = FIDELITY.of(table)
        assert list(described) == list(rows)
        for item, row in described.items():
            assert row.kind in FIDELITY.kinds
            assert set(row.held) <= set(FIDELITY.parts)
            assert (row.reading == "R6") == (item == "aadml" or item.startswith("aa-")), item
            assert bool(row.held) >= (row.kind in ("certified", "two implementations")), item
    assert "DAML" in FIDELITY.losses["dsml-contrastive"].remark
