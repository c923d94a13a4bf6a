from dataclasses import replace

from aadml.configuration.config import resolve
from aadml.feature_extraction.ground.json_values import to_bytes
from aadml.runs.evaluate import evaluate
from aadml.runs.loading import read_evaluation
from aadml.runs.run_names import evaluation_file
from aadml.runs.scoring import Scoring
from aadml.runs.store import open_run
from aadml.studies import job
from aadml.studies.job import FAILURE, Job, is_done, scored, work_off


def test_an_unexpected_error_is_recorded_with_its_traceback_and_removed_by_a_success(base, tmp_path, monkeypatch):
    def broken(*arguments, **options):
        trained.append((arguments, options))
        raise ZeroDivisionError("by nought")

    trained = []
    run = Job(tmp_path / "run", resolve(base))
    with monkeypatch.context() as patch:
        patch.setattr(job, "train_into", broken)
        assert work_off(run) == "ZeroDivisionError: by nought"
        further = Job(
            run.folder, run.config, "valid", ("recall@3",), diagnosis=2, needs=Job(tmp_path / "prior", run.config)
        )
        assert work_off(further) == "ZeroDivisionError: by nought"
    scorings = [Scoring(queries=True, saving_share=20),
                Scoring("valid", queries=True, metrics=("recall@3",), diagnosis=2, saving_share=20)]  # fmt: skip
    assert [arguments for arguments, _ in trained] == [(run.config, run.folder, scoring) for scoring in scorings]
    assert [options["priors"] for _, options in trained] == [None, tmp_path]
    assert "Traceback" in (run.folder / FAILURE).read_text()
    epochs = []
    assert work_off(run, epochs.append) == ""
    assert epochs == [(1, 3), (2, 3), (3, 3)]
    assert is_done(run)
    assert not (run.folder / FAILURE).exists()


def test_metrics_that_are_added_after_the_training_are_scored_without_a_training(base, tmp_path):
    run = Job(tmp_path / "run", resolve(base))
    assert work_off(run) == ""
    further = Job(run.folder, run.config, metrics=("recall@3",), protocols=("legacy:partner",))
    assert not is_done(further)
    epochs = []
    assert work_off(further, epochs.append) == ""
    assert epochs == []
    assert is_done(further)
    both = Job(run.folder, run.config, metrics=("mrr", "recall@3"))
    evaluate(run.folder, metrics=("mrr", "ndcg@5"), exclude_partner=True)
    assert not is_done(both)
    evaluate(run.folder, metrics=("mrr", "ndcg@5"))
    assert is_done(both)
    name = evaluation_file("inductive", "test", "mrr", "ndcg@5")
    of_dots = replace(read_evaluation(run.folder, name=name), similarity="dot").to_json()  # of an earlier version
    with open_run(run.folder) as store:
        store.commit({name: to_bytes(of_dots)})
    assert not is_done(both)
    evaluate(run.folder, metrics=("mrr", "ndcg@5"))
    assert all(scored(both).figure(metric) for metric in both.metrics)
