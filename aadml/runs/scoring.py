"""Evaluation of the model of a run after training, or after a stage of training."""

from dataclasses import dataclass, replace

from aadml.comparison.clips import Clips, Splits
from aadml.configuration.config import Config
from aadml.methods.training.session import Session, numbers
from aadml.methods.training.train_scores import can_be_scored, train_scores
from aadml.model.model import Model
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.record import EvaluationRecord
from aadml.runs.data import with_complete_clusters
from aadml.runs.result_warnings import result_warnings


@dataclass(frozen=True)
class Scoring:
    """Settings of the evaluation after training, and of saving states during training.

    Attributes:
        split: "test", or "valid" for a trial of a hyperparameter search. A trial must not read the test clips. A
            method without epochs is fitted on the training clips, and with "test" also on the validation clips.
        queries: whether the record also contains the average precision of each query.
        metrics: metrics in addition to the metrics of every evaluation.
        diagnosis: number of epochs between two evaluations of the test clips; 0 for no such evaluation. Only
            figures show the scores. See `aadml.runs.test_curve`.
        saving_share: 0 to save the state after every epoch, n to spend at most 1/n of the time on saves. See
            `RunSession`.
    """

    split: str = "test"
    queries: bool = False
    metrics: tuple[str, ...] = ()
    diagnosis: int = 0
    saving_share: int = 0


TEST = Scoring()


def score_model(
    model: Model, config: Config, splits: Splits, session: Session, seconds: float, scoring: Scoring = TEST
) -> EvaluationRecord:
    """Score a trained model on a split and return the content of `evaluation.json`.

    Args:
        model: trained model, whose history is in `session`.
        config: config of the run.
        splits: data of the run.
        session: training session.
        seconds: duration of fitting, in seconds.
        scoring: settings of the evaluation.

    Raises:
        InputError: see `aadml.retrieval.evaluate`.
    """
    facts = model.facts
    clusters = with_complete_clusters(splits, scoring.split).clusters
    embeddings = replace(model.embed_clips(splits[scoring.split]), clusters=clusters)
    evaluation = evaluate(embeddings, protocol=facts.protocol, split=scoring.split, extra=scoring.metrics)
    if config.common.unseen_classes is not None:
        evaluation = replace(evaluation, label_space={})  # no dimension belongs to a tested class
    steps = [int(numbers(record).get("steps", 0)) for record in session.history]
    return replace(
        evaluation.record(queries=scoring.queries),
        label=facts.label,
        seed=facts.seed,
        selected_epoch=facts.selected_epoch,
        epochs=len(steps) or None,
        steps=sum(steps) or None,
        train_map=_train_map(model, splits.train, session),
        seconds=round(seconds, 3),
        parameters=model.method.parameters_count(),
        verdicts=result_warnings(evaluation, splits.train, session.history, facts),
    )


def _train_map(model: Model, train: Clips, session: Session) -> float | None:
    """Return the MAP of the training clips with the weights of the chosen epoch.

    The MAP is None with `train_map` off, after training without epochs, for clips that cannot be scored, or without
    relevant items.
    """
    if not session.history or not model.facts.training.train_map or not can_be_scored(train):
        return None
    return train_scores(model.embed_clips(train)).get("map_mean")
