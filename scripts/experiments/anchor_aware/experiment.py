"""What the stages of the plan are of: data sets, schedules, and how a run becomes a job and a row."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from aadml.configuration.config import Config
from aadml.configuration.files import ConfigFile
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.methods.training.session import numbers
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.significance import Values
from aadml.runs.environment import git_commit, read_environment
from aadml.runs.run_names import file_name
from aadml.studies.comparison_rows import RowSettings, file_of, fitted_config
from aadml.studies.folder import RUNS
from aadml.studies.grid import Overrides
from aadml.studies.job import Job, scored_under
from aadml.studies.results import read_run
from aadml.studies.sweep import SweepOutcome
from scripts.experiments.anchor_aware.contenders import TRAIN_MAP, current
from scripts.experiments.anchor_aware.ledger import Key, Ledger, Row

STEPS = 3600
"""Of a finalist (the AADML paper on AVE)."""
PATIENCE = 600
"""Steps without a better validation MAP after which a training ends."""
PROTOCOLS = {"bank": "bank", "label_graph": "legacy:label-graph", "partner": "legacy:partner"}
"""Column of a row -> protocol under which the anchor-aware finalists are scored too."""


@dataclass(frozen=True)
class DataSet:
    """A data set of the experiment.

    Attributes:
        base: config values that every method's options are put into, with the data.
        steps: of an epoch.
        clips: to train on.
        changes: keys and values that were asked for, set wherever a shipped config has them.
        max_epochs: upper limit on the epochs of every run, where one is asked for.
    """

    base: JsonObject
    steps: int
    clips: int
    changes: Overrides = field(default_factory=Overrides)
    max_epochs: int | None = None

    def config(self, loss: str, options: JsonObject, steps: int, *, stops: bool = True) -> Config:
        """Give the config of a contender or rival.

        Args:
            loss: that it is, with the prefix of its proxy.
            options: drawn for it.
            steps: that it trains at most.
            stops: whether it ends once `PATIENCE` steps brought nothing.
        """
        epochs = min(math.ceil(steps / self.steps), self.max_epochs or steps)
        schedule: JsonObject = {
            "training.epochs": epochs,
            "training.patience": min(math.ceil(PATIENCE / self.steps), epochs) if stops else 0,
        }
        return Overrides({"loss": loss, **current(options), **schedule}).applied(ConfigFile(self.base))

    def shipped(self, names: Sequence[str]) -> dict[str, Config]:
        """Give the configs of methods, or shipped ones, on this data: their own networks and schedules."""
        changes = self.changes | Overrides({"training.train_map": TRAIN_MAP})
        shared = RowSettings(str(self.base["data"]), changes, self.max_epochs)
        return {name: fitted_config(file_of(name), name, shared, {}) for name in names}


@dataclass(frozen=True)
class Experiment:
    """What the stages are of.

    Attributes:
        sets: name -> data set, in order of importance.
        seeds: at most, of each method.
        ledger: what is finished.
        drawn: name -> data set that the plan draws itself, by what partners share.
        frozen: method -> options that were chosen on another set; empty where options are chosen on the own set.
    """

    sets: Mapping[str, DataSet]
    seeds: int
    ledger: Ledger
    drawn: Mapping[str, DataSet] = field(default_factory=dict)
    frozen: Mapping[str, JsonObject] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """A run of a stage.

    Attributes:
        stage: its name.
        key: as its row will have it.
        config: with its seed.
        split: that is scored: "valid" where options are chosen.
        protocols: columns of PROTOCOLS.
    """

    stage: str
    key: Key
    config: Config
    split: str = "test"
    protocols: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, stage: str, data_set: str, method: str, options: JsonObject, config: Config, seed: int,
        *, split: str = "test", protocols: tuple[str, ...] = (),
    ) -> "Run":  # fmt: skip
        """Name a run by what it is."""
        key = Key(data_set, method, seed, json.dumps(options, sort_keys=True))
        return cls(stage, key, config.seeded(seed), split, protocols)

    def job(self, folder: Path) -> Job:
        """Say where it is worked off."""
        digest = hashlib.sha256(self.key.options.encode()).hexdigest()[:8]
        name = file_name(f"{self.key.data_set}_{self.key.method}_{digest}_seed{self.key.seed}")
        protocols = tuple(PROTOCOLS[one] for one in self.protocols)
        return Job(folder / RUNS / self.stage / name, self.config, self.split, protocols=protocols)

    def result(self, outcome: SweepOutcome) -> "Result":
        """Read what became of the run."""
        key, job = self.key, outcome.job
        row = Row(data_set=key.data_set, method=key.method, options=key.options, seed=key.seed)
        if outcome.reason:
            return Result(replace(row, commit=git_commit() or "", failed=outcome.reason))
        found = read_run(job)
        record, tested = found.record, self.split == "test"
        kept = next((one for one in map(numbers, found.epochs) if one["epoch"] == record.selected_epoch), {})
        others = {name: scored_under(job, PROTOCOLS[name]).map_mean for name in self.protocols}
        row = replace(
            row, steps=record.steps, epochs=record.epochs, epoch=record.selected_epoch, seconds=record.seconds,
            valid_map=kept.get("valid map_mean"), train_map=record.train_map,
            commit=read_environment(job.folder).commit or "",
        )  # fmt: skip
        if not tested:
            return Result(row)
        row = replace(
            row, test_map=record.map_mean, audio_visual=_map_of(record, "audio-visual"),
            visual_audio=_map_of(record, "visual-audio"), chance=record.chance, bank=others.get("bank"),
            label_graph=others.get("label_graph"), partner=others.get("partner"),
        )  # fmt: skip
        return Result(row, _average_precisions(record), found.values)


@dataclass(frozen=True)
class Result:
    """What became of a run.

    Attributes:
        row: row of the ledger.
        precisions: (q,) average precision of every test query; None for runs that were not scored on test clips.
        pseudo_values: (u,) pseudo-value of every test clip or cluster; None for the same runs.
    """

    row: Row
    precisions: Values | None = None
    pseudo_values: Values | None = None


def _average_precisions(record: EvaluationRecord) -> Values:
    """Return the average precision of each query, as the mean of the directions, whose queries are the same clips."""
    queries = [scores.per_query for scores in record.directions.values() if scores.per_query is not None]
    if any(scores.id != queries[0].id for scores in queries):
        raise ValueError(f"queries differ between {', '.join(record.directions)}; mask no modality of a test clip")
    return np.mean([scores.average_precision for scores in queries], axis=0)


def _map_of(record: EvaluationRecord, direction: str) -> float | None:
    return record.directions[direction].map if direction in record.directions else None
