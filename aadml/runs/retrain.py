"""Training a run again on changed data: what was fitted or chosen on the test split shows in the weights."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.configuration.config import Config
from aadml.data import open_data
from aadml.data.captions.captioned_sets import is_captioned
from aadml.feature_extraction.feature_file import FeatureFile, write_features
from aadml.methods.training.session import Session
from aadml.model.model import Model
from aadml.protocols.audit import Finding, Verdict
from aadml.retrieval import evaluate
from aadml.runs.loading import Run
from aadml.runs.prepare import prepare
from aadml.runs.train import fit_model

CLOSE = 1e-4
"""Largest relative difference of weights that another order of sums may cause."""

REPEATED = 0.05
"""MAP by which a training that cannot be repeated to the byte (another machine, other versions) may differ."""

CHECK = "fitted without test"


def fitted_without_test(run: Run, split: str) -> Finding:
    """Train a run again, as it is and with its test clips replaced; compare weights and scores.

    Trained three times: on the data as they are, with noise in the place of the test clips, and with the labels of the
    test clips permuted. A run that never saw them has the same weights each time.

    Args:
        run: with its data.
        split: whose clips are replaced.
    """
    if is_captioned(run.config.data):
        return Finding(CHECK, Verdict.NOT_CHECKABLE, "captioned sound cannot be rewritten with other test clips")
    content = open_data(run.config.data)
    as_it_is = _trained(run.config, content)
    changes = {
        "with noise for test clips": _changed(_trained(run.config, _with_noise(content, split)), as_it_is),
        "with permuted test labels": _changed(_trained(run.config, _with_permuted(content, split)), as_it_is),
        "as it is": _changed(run.model, as_it_is),
    }
    differences = ", ".join(f"{name} {change:.2g}" for name, change in changes.items())
    evidence = f"trained again: weights differ (relative) {differences}"
    repeated = changes.pop("as it is") <= CLOSE
    if max(changes.values()) > CLOSE:
        return Finding(CHECK, Verdict.FAIL, f"{evidence}; training depends on the {split} clips")
    if repeated:
        return Finding(CHECK, Verdict.PASS, evidence)
    ours, again = (evaluate(model.embed_clips(run.splits[split])).map_mean for model in (run.model, as_it_is))
    evidence += f"; MAP of the run {ours:.4f}, of its repetition {again:.4f}"
    if ours > again + REPEATED:
        return Finding(CHECK, Verdict.FAIL, f"{evidence}; its config does not give these weights")
    return Finding(CHECK, Verdict.PASS, f"{evidence}; the run could not be repeated to the byte here")


def _trained(config: Config, content: FeatureFile) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "features.h5"
        write_features(place, content)
        return fit_model(prepare(config.on(str(place))), Session())


def _with_noise(content: FeatureFile, split: str) -> FeatureFile:
    rows, generator = content.rows(split), np.random.default_rng(0)

    def noisy(values: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        changed = values.copy()
        drawn = generator.standard_normal((len(rows), values.shape[1]))
        changed[rows] = (drawn * values.std() + values.mean()).astype(np.float32)
        return changed

    features = {name: noisy(values, rows) for name, values in content.features.items()}
    texts = content.texts
    if texts is not None:
        texts = replace(texts, values=noisy(texts.values, np.flatnonzero(np.isin(texts.rows, rows))))
        features["text"] = texts.first_of_each(len(content.ids))[0]
    return replace(content, features=features, sequences={}, texts=texts)


def _with_permuted(content: FeatureFile, split: str) -> FeatureFile:
    labels, rows = content.labels.copy(), content.rows(split)
    labels[rows] = labels[np.random.default_rng(1).permutation(rows)]
    return replace(content, labels=labels, sequences={})


def _changed(model: Model, other: Model) -> float:
    """Give the largest difference of a tensor of two models, relative to its length; infinity where shapes differ."""
    one, two = _tensors(model), _tensors(other)
    if one.keys() != two.keys() or any(one[key].shape != two[key].shape for key in one):
        return float("inf")
    return max((_relative(one[key], two[key]) for key in one), default=0.0)


def _tensors(model: Model) -> Mapping[str, Tensor]:
    return {**model.method.state(), **{f"inputs.{key}": value for key, value in model.scaling.state().items()}}


def _relative(one: Tensor, two: Tensor) -> float:
    if torch.equal(one, two):
        return 0.0
    return float((one.double() - two.double()).norm() / two.double().norm().clamp_min(1e-12))
