"""Audits of the encoders of the channel zoo, and their scores without checks, for tests and scripts/soak/audit.py."""

import ctypes
import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from aadml.protocols.audit import audit, with_garbage_labels
from aadml.protocols.pipelines import FunctionPipeline, of_function
from aadml.protocols.subprocess_embedding import in_fresh_process
from aadml.retrieval.evaluation import evaluate
from tests.protocols import channel_zoo as zoo

TRACES = (zoo.PLACE, Path("/var/tmp/aadml-channel-zoo"), Path("/dev/shm/aadml-channel-zoo"))


def remove_traces():
    """Remove what earlier encoders left on this machine."""
    for place in TRACES:
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):
            place.unlink()
    (Path(zoo.__file__).parent / "__pycache__/aadml-channel-zoo.pyc").unlink(missing_ok=True)
    for name in os.listxattr(zoo.__file__):
        if name.startswith("user.zoo"):
            os.removexattr(zoo.__file__, name)
    library = ctypes.CDLL(None)
    if (number := library.shmget(0xAAD31, 0, 0o600)) >= 0:
        library.shmctl(number, 0, None)  # IPC_RMID


def planted(splits):
    """Put the labels of the scored clips into a file, and return them as leaks find them in the environment."""
    remove_traces()
    test = splits.test
    rows = {m: test.matrix(m).numpy() for m in test.modalities}
    table = {zoo.key(row): int(label) for m in rows for row, label in zip(rows[m], test.labels, strict=True)}
    zoo.PLACE.mkdir()
    (zoo.PLACE / "planted").write_text(json.dumps(table))
    return {"AADML_CHANNEL_ZOO": json.dumps(table)}


def ridge_weights(splits, place):
    """Write the weights of a ridge regression onto the labels of the training clips, for the encoder `ridge`."""
    train = splits.train
    targets = np.eye(len(train.class_names))[train.labels.numpy()]
    solved = {}
    for modality in train.modalities:
        rows = train.matrix(modality).numpy().astype(np.float64)
        solved[modality] = np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]), rows.T @ targets)
    np.savez(place, **solved)
    return place


def report(encoder, splits, checks, *, weights=None, seed=None, seconds=120.0, **order):
    """Audit an encoder of the zoo in isolation."""
    pipeline = of_function(zoo.identity, [] if weights is None else [weights])
    pipeline = replace(pipeline, order=replace(pipeline.order, place=f"channel_zoo:{encoder}", **order))
    return audit(pipeline, splits, checks, seconds=seconds, seed=seed)


def scores(encoder, clips):
    """Return the MAP of a call, and of a call with garbage labels in another process, without isolation.

    The similarity is the one that resolves the leak.
    """
    pipeline = FunctionPipeline(getattr(zoo, encoder))
    results = []
    for part in (clips, with_garbage_labels(clips, [2])):

        def work(part=part):
            return [{m: pipeline.embedder(None, "test")(part).matrix(m) for m in clips.modalities}]

        results += in_fresh_process(work, seconds=60.0).vectors
    similarity = zoo.RESOLVED_BY.get(encoder, "cosine")
    return [evaluate(clips.embedded(vectors, similarity)).map_mean for vectors in results]
