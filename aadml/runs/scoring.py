"""The one look at the split that is scored, once training is over."""

from dataclasses import dataclass, replace

from aadml.comparison.clips import Clips, Splits
from aadml.configuration.config import Config
from aadml.methods.training.session import Session, numbers
from aadml.methods.training.train_scores import can_be_scored, train_scores
from aadml.model.model import Model
from aadml.retrieval import evaluate
from aadml.retrieval.record import EvaluationRecord
from aadml.runs.result_warnings import verdicts


@dataclass(frozen=True)
class Scoring:
    """What is scored once training is over.

    Attributes:
        split: "test", or "valid" for a trial of a search, which must not look at test. A method without epochs to
            choose, which would else be fitted on the validation clips too, is then kept from them.
        queries: whether the average precision of each query is written too.
        metrics: that are scored beside those of every evaluation.
        diagnosis: epochs between two looks at the test clips, for figures of epochs alone; 0 never looks. See
            `aadml.runs.test_curve`.
    """

    split: str = "test"
    queries: bool = False
    metrics: tuple[str, ...] = ()
    diagnosis: int = 0


TEST = Scoring()


def score_model(
    model: Model, config: Config, splits: Splits, session: Session, seconds: float, scoring: Scoring = TEST
) -> EvaluationRecord:
    """Score a trained model on a split, once; return what `evaluation.json` says.

    Args:
        model: trained, up to where `session` says.
        config: that it was trained by.
        splits: its data.
        session: of the training.
        seconds: that fitting took.
        scoring: what is scored, and in what detail.
    """
    facts = model.facts
    embeddings = model.embed_clips(splits[scoring.split])
    evaluation = evaluate(embeddings, protocol=facts.protocol, split=scoring.split, extra=scoring.metrics)
    if config.common.unseen_classes is not None:
        evaluation = replace(evaluation, label_space={})  # no dimension stands for a class that is tested
    steps = [int(numbers(one).get("steps", 0)) for one in session.history]
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
        verdicts=verdicts(evaluation, splits.train, session.history, facts),
    )


def _train_map(model: Model, train: Clips, session: Session) -> float | None:
    """Score the training clips under the weights of the chosen epoch; None where no epoch was, or nobody wants it."""
    if not session.history or not model.facts.training.train_map or not can_be_scored(train):
        return None
    return float(train_scores(model.embed_clips(train))["map_mean"])
