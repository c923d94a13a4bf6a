"""Scores of a trained run under a named protocol, kept beside the run."""

import json
from pathlib import Path
from typing import Any

from aadml.comparison.types import Splits
from aadml.configuration.config import Config
from aadml.model.encoder import Encoder
from aadml.protocols.evaluation import evaluate_under
from aadml.protocols.protocol import Subject
from aadml.retrieval import Evaluation
from aadml.runs.data import protocol_of
from aadml.runs.folder import EVALUATION, device_of
from aadml.runs.train import build_encoder, load_run
from feature_extraction.ground.atomic import write_text

EVALUATIONS = "evaluations"


def evaluate_run(run: Path, *, split: str = "test", protocol: str | None = None, **options: Any) -> Evaluation:
    """Score a split of a run's data; the result is added to the run as `evaluations/<protocol>-<split>.json`.

    What the options change is part of the file's name, so that no score is taken for another.

    Args:
        run: a trained run folder; its own `evaluation.json` is never overwritten.
        split: "train", "valid" or "test".
        protocol: a key of PROTOCOLS, or several leaks joined by "+"; None is the run's own.
        options: of `aadml.retrieval.evaluate`.

    Raises:
        InputError: not a trained run, or an unknown split or protocol.
    """
    config, splits, encoder = load_run(run)
    protocol = protocol or protocol_of(config)
    evaluation = evaluate_under(subject_of(config, splits, encoder), protocol, split=split, **options)
    if (run / EVALUATION).is_file():
        result = evaluation.to_json() | {"label": config.label(), "seed": config["seed"]}
        extra = [str(name) for name in options.pop("extra", ())]
        name = "-".join([protocol.replace(":", "-"), split, *map(str, options.values()), *extra])
        write_text(run / EVALUATIONS / f"{name}.json", json.dumps(result, indent=2) + "\n")
    return evaluation


def subject_of(config: Config, splits: Splits, encoder: Encoder) -> Subject:
    """Lay out a run for the protocols; training again is done by the run's own config."""

    def retrain(changed: Splits) -> Encoder:
        again = build_encoder(config, changed, device_of(config["device"]))
        again.method.fit(again.scaling.clips(changed.train), again.scaling.clips(changed.valid))
        return again

    return Subject(encoder, splits, retrain)
