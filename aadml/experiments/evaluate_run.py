"""Scores of a trained run under a named protocol, kept beside the run."""

import json
from pathlib import Path
from typing import Any

from aadml.experiments.run import load_run
from aadml.experiments.runs import EVALUATION
from aadml.retrieval import Evaluation, evaluate
from feature_extraction.atomic import write_text


def evaluate_run(run: Path, *, split: str = "test", protocol: str = "inductive", **options: Any) -> Evaluation:
    """Score a split of a run's data; the result is added to the run as `evaluations/<protocol>-<split>.json`.

    Args:
        run: a trained run folder; its own `evaluation.json` is never overwritten.
        split: "train", "valid" or "test".
        protocol: how the items are embedded.
        options: of `aadml.retrieval.evaluate`.

    Raises:
        InputError: not a trained run, or an unknown split.
    """
    config, splits, encoder = load_run(run)
    evaluation = evaluate(encoder.embed_clips(splits[split]), protocol=protocol, split=split, **options)
    if (run / EVALUATION).is_file():
        result = evaluation.to_json() | {"label": config.label(), "seed": config["seed"]}
        name = f"{protocol.replace(':', '-').replace('+', '-')}-{split}.json"
        write_text(run / "evaluations" / name, json.dumps(result, indent=2) + "\n")
    return evaluation
