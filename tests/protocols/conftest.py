"""Fixtures of protocols: a small trained subject, and the memory of the zoo's encoders."""

import numpy as np
import pytest
import torch

import aadml
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.options import OptionValues
from aadml.methods import METHODS
from aadml.methods.inputs import Inputs, fit_scaling
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.training.settings import Training
from aadml.model.facts import Facts, MethodFacts
from aadml.model.model import Model
from aadml.objective.composition import ProxySection
from aadml.protocols.protocol import Subject
from tests.protocols import zoo


def trained(splits):
    context = Context({m: splits.train.dimension(m) for m in splits.train.modalities}, len(splits.train.class_names))
    settings = Training(epochs=12, batch=20, learning_rate=5e-3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = METHODS["aadml"](
            context, settings, network=NetworkOptions(hidden=(24,)), proxy=ProxySection.of("anchor-aware")
        )
    facts = Facts(
        label="aa-triplet", method=MethodFacts("aadml", OptionValues()), training=settings, inputs=Inputs(),
        dimensions=context.dimensions, class_names=splits.train.class_names, clips=len(splits.train), seed=0,
    )  # fmt: skip
    encoder = Model(method, fit_scaling(splits.train), facts)
    method.fit(encoder.scaling.clips(splits.train), encoder.scaling.clips(splits.valid))
    return encoder


@pytest.fixture(scope="module")
def subject():
    content = synthetic(classes=4, train=80, valid=24, test=44, dimensions=(7, 9), difficulty=0.5)
    splits = to_splits(content)
    return Subject(trained(splits), splits, trained)


@pytest.fixture
def memory(subject):
    """Let the zoo's encoders memorize the scored clips."""
    test = subject.splits.test
    labels = test.labels.numpy()
    for modality in test.modalities:
        rows = test.matrix(modality).numpy()
        ridge = rows.T @ rows + np.eye(rows.shape[1])
        zoo.TEST[modality] = {
            "rows": rows,
            "labels": labels,
            "table": {row.tobytes(): int(label) for row, label in zip(rows, labels, strict=True)},
            "weights": np.linalg.solve(ridge, rows.T @ np.eye(4)[labels]),
        }
    zoo.STATE.clear()


NUMBERS = np.random.default_rng(0)


def clips(names, count=40):
    """Clips of the classes `names` in turn, without classes for None."""
    labels = None if names is None else [names[row % len(names)] for row in range(count)]
    return aadml.Clips.of(labels, audio=NUMBERS.normal(size=(count, 5)), visual=NUMBERS.normal(size=(count, 6)))


@pytest.fixture(scope="module")
def model():
    """A model of the classes a, b and c."""
    return aadml.fit(clips("abc"), epochs=1, settings={"network.hidden": [8], "training.batch": 12})
