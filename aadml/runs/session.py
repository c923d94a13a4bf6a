"""Training session in a run folder. An interrupted run continues from its last saved state."""

import json
import math
import time
from pathlib import Path
from typing import cast

from aadml.feature_extraction.ground.atomic import remove_leftovers
from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.feature_extraction.ground.json_values import parse_object
from aadml.methods.training.session import SILENT, Callbacks, Checkpoint, EpochWeights, Record, Session
from aadml.model.packing import pack_tensors, unpack_tensors
from aadml.runs.manifest import LOG, RunManifest, read_manifest
from aadml.runs.store import RunStore
from aadml.runs.test_curve import Diagnosis, without_diagnosis


def read_records(run: Path | RunManifest) -> list[Record]:
    """Read the records of all epochs of a run, from the log.

    Raises:
        InputError: the folder is not a run, or the log is missing or damaged.
    """
    manifest = read_manifest(run)
    return [_record(line, manifest.folder / LOG) for line in manifest.read_log().splitlines()]


def _record(line: bytes, log: Path) -> Record:
    record = parse_object(line, log)
    wrong = [key for key, value in record.items() if key != "stage" and not _is_number(value)]
    if wrong or "epoch" not in record:
        raise DamagedFileError(
            f"{log} is damaged, as {wrong[0] if wrong else 'epoch'} of an epoch is not a number; restore the file from "
            "a copy"
        )
    return cast(Record, record)


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)


def read_curves(run: Path | RunManifest) -> list[Record]:
    """Read the records of all epochs of a run, without the scores of the test clips.

    Raises:
        InputError: the folder is not a run, or the log is missing or damaged.
    """
    return list(map(without_diagnosis, read_records(run)))


class RunSession(Session):
    """Session with log, best weights and state in a run's store. One commit saves best weights and state.

    Args:
        store: locked store of the run.
        saving_share: 0 saves after every epoch, n spends at most 1/n of the time on saves. In many short runs in a row,
            repeating some seconds of training takes less time than writing all states.
        callbacks: see `Session`.
        diagnosis: function that scores the test clips after an epoch; the scores are written only to the log on disk,
            not to `history`.
    """

    def __init__(
        self,
        store: RunStore,
        callbacks: Callbacks = SILENT,
        *,
        saving_share: int = 0,
        diagnosis: Diagnosis | None = None,
    ) -> None:
        super().__init__(callbacks)
        self._diagnosis = diagnosis
        self._store = store
        self._best_is_stored = True
        self._saving_share = saving_share
        self._saved_at, self._saving_seconds = -math.inf, 0.0
        self._seconds_before = store.manifest.seconds
        self._added: dict[str, bytes] = {}

    @property
    def seconds(self) -> float:
        """Seconds spent fitting, in this process and earlier processes."""
        return self._seconds_before + super().seconds

    def log(self, record: Record, weights: EpochWeights | None = None) -> None:
        """Append the record of an epoch to the log, followed by the scores of the test clips, if any.

        Raises:
            InputError: the log cannot be written.
        """
        scores = self._diagnosis(int(record["epoch"]), weights) if self._diagnosis and weights else {}
        self._store.append((json.dumps({**record, **scores}) + "\n").encode())
        super().log(record)

    def add(self, name: str, data: bytes) -> None:
        """Store a file of the run in memory; the next `save` that commits a state also commits the file."""
        remove_leftovers(self._store.folder / name)
        self._added[name] = data

    def added(self) -> dict[str, bytes]:
        """Return the files that no `save` has committed, and remove these files from the next `save`."""
        files, self._added = self._added, {}
        return files

    def keep_best(self, checkpoint: Checkpoint) -> None:
        """Set the weights of the best epoch so far, which the next `save` commits."""
        super().keep_best(checkpoint)
        self._best_is_stored = False

    def best(self) -> Checkpoint | None:
        """Return the best weights, of this process or an earlier process; None without best weights.

        Raises:
            InputError: the stored weights are missing or damaged.
        """
        stored = self._store.manifest.numbered("best")
        if super().best() is None and stored is not None:
            super().keep_best(self._read(stored))
        return super().best()

    def save(self, checkpoint: Checkpoint) -> None:
        """Commit the state from which an interrupted run continues, with new best weights and added files.

        Nothing is committed if saving would exceed the share of time set by `saving_share`.

        Raises:
            InputError: the folder of the run cannot be written.
        """
        started = time.monotonic()
        if started - self._saved_at < self._saving_share * self._saving_seconds:
            return
        manifest, number = self._store.manifest, self._store.next_number()
        files, drop = {f"state-{number}.safetensors": checkpoint}, [manifest.numbered("state")]
        best = super().best()
        if best is not None and not self._best_is_stored:
            files[f"best-{number}.safetensors"] = best
            drop.append(manifest.numbered("best"))
        packed = {name: pack_tensors(content) for name, content in files.items()}
        self._store.commit(packed | self.added(), drop=[name for name in drop if name], seconds=self.seconds)
        self._best_is_stored = True
        self._saved_at = time.monotonic()
        self._saving_seconds = self._saved_at - started

    def resume(self) -> Checkpoint | None:
        """Return the last state, and read the log up to this state; None without a state.

        Raises:
            InputError: the state, the best weights or the log are missing or damaged.
        """
        name = self._store.manifest.numbered("state")
        if name is None:
            return None
        self.best()  # raises an error before training continues, if the best weights are damaged
        self.history = read_curves(self._store.manifest)
        return self._read(name)

    def _read(self, name: str) -> Checkpoint:
        return unpack_tensors(self._store.manifest.read(name), self._store.folder / name)
