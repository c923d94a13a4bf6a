"""Retraining of a run on changed data, to detect fitting or selection on the test split."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.configuration.config import Config
from aadml.data.captions.captioned_sets import is_captioned
from aadml.data.reading import open_data
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.methods.training.session import Session
from aadml.model.model import Model
from aadml.protocols.audit import Finding, Verdict
from aadml.retrieval.evaluation import evaluate
from aadml.runs.loading import Run
from aadml.runs.prepare import prepare
from aadml.runs.train import fit_model

CLOSE = 1e-4
"""Largest relative difference of weights that is attributed to a different order of summation."""

REPEATED = 0.05
"""Largest difference of MAP that is attributed to a different machine or other versions."""

CHECK = "fitted without test"


def fitted_without_test(run: Run, split: str) -> Finding:
    """Train a run again with unchanged and changed clips of a split, and compare weights and scores.

    The run is trained three times: on the unchanged data, with noise instead of the clips of the split, and with
    permuted labels of these clips. Training that does not read the clips produces the same weights each time. If the
    weights differ, the run is trained once more on the unchanged data.

    Args:
        run: the run with its data.
        split: split whose clips are changed.

    Returns:
        The finding. The verdict is FAIL if the weights depend on the clips of the split. The verdict is also FAIL
        for a repetition on unchanged data with weights different from those of the run and a MAP lower by more than
        `REPEATED`. The verdict is NOT_CHECKABLE for media, captioned sound, and training that gives other weights on
        unchanged data each time, and PASS otherwise.

    Raises:
        InputError: the data cannot be read or copied, or the run cannot be trained again.
    """
    if run.config.towers is not None or is_captioned(run.config.data):
        kind = "captioned sound" if run.config.towers is None else "media"
        return Finding(CHECK, Verdict.NOT_CHECKABLE, f"{kind} cannot be rewritten with other {split} clips")
    content = open_data(run.config.data)
    rows = np.flatnonzero(np.isin(content.ids, run.splits[split].ids))  # the config may divide the clips anew
    repetition = _trained(run.config, content)
    changes = {
        f"with noise for {split} clips": _difference(_trained(run.config, _with_noise(content, rows)), repetition),
        f"with permuted {split} labels": _difference(_trained(run.config, _with_permuted(content, rows)), repetition),
        "on unchanged data": _difference(run.model, repetition),
    }
    differences = ", ".join(f"{name} {change:.2g}" for name, change in changes.items())
    evidence = f"relative difference of weights after retraining: {differences}"
    is_repeated = changes.pop("on unchanged data") <= CLOSE
    if max(changes.values()) > CLOSE:
        if (again := _difference(_trained(run.config, content), repetition)) > CLOSE:
            return Finding(
                CHECK,
                Verdict.NOT_CHECKABLE,
                f"{evidence}, on unchanged data once more {again:.2g}; training is not repeatable here (on a GPU, set "
                "device to cpu)",
            )
        return Finding(CHECK, Verdict.FAIL, f"{evidence}; training depends on the {split} clips")
    if is_repeated:
        return Finding(CHECK, Verdict.PASS, evidence)
    score, repeated = (evaluate(model.embed_clips(run.splits[split])).map_mean for model in (run.model, repetition))
    evidence += f"; MAP of the run {score:.4f}, of its repetition {repeated:.4f}"
    if score > repeated + REPEATED:
        return Finding(CHECK, Verdict.FAIL, f"{evidence}; its config does not reproduce these weights")
    return Finding(CHECK, Verdict.PASS, f"{evidence}; on this machine the weights could not be reproduced to the byte")


def _trained(config: Config, content: FeatureFile) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "features.h5"
        write_features(place, content)
        return fit_model(prepare(config.on(str(place))), Session())


def _with_noise(content: FeatureFile, rows: NDArray[np.int64]) -> FeatureFile:
    generator = np.random.default_rng(0)

    def noisy(values: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        changed = values.copy()
        drawn = generator.standard_normal((len(rows), values.shape[1]))
        changed[rows] = (drawn * values.std() + values.mean()).astype(np.float32)
        return changed

    features = {name: noisy(values, rows[content.has(name)[rows]]) for name, values in content.features.items()}
    texts = content.texts
    if texts is not None:
        texts = replace(texts, values=noisy(texts.values, np.flatnonzero(np.isin(texts.rows, rows))))
        features["text"] = texts.first_of_each(len(content.ids))[0]
    return replace(content, features=features, sequences={}, texts=texts)


def _with_permuted(content: FeatureFile, rows: NDArray[np.int64]) -> FeatureFile:
    order = np.arange(len(content.ids))
    order[rows] = np.random.default_rng(1).permutation(rows)
    all_labels = None if content.all_labels is None else content.all_labels[order]
    return replace(content, labels=content.labels[order], all_labels=all_labels, sequences={})


def _difference(model: Model, other: Model) -> float:
    """Return the largest change of a tensor, relative to its norm in `other`; infinity if names or shapes differ."""
    before, after = other.tensors(), model.tensors()
    if before.keys() != after.keys() or any(before[key].shape != after[key].shape for key in before):
        return float("inf")
    return max((_relative(after[key], before[key]) for key in after), default=0.0)


def _relative(tensor: Tensor, reference: Tensor) -> float:
    if torch.equal(tensor, reference):
        return 0.0
    return float((tensor.double() - reference.double()).norm() / reference.double().norm().clamp_min(1e-12))
