"""Inputs of the stages of the plan: data sets, schedules, and the conversion of runs to jobs and rows."""

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
"""Number of steps of a finalist (the AADML paper on AVE)."""
PATIENCE = 600
"""Number of steps without a better validation MAP after which training ends."""
PROTOCOLS = {"bank": "bank", "label_graph": "legacy:label-graph", "partner": "legacy:partner"}
"""Column of a row -> further protocol that scores the anchor-aware finalists."""


@dataclass(frozen=True)
class DataSet:
    """A data set of the experiment.

    Attributes:
        base: config values of every method, with the data.
        steps: number of steps of an epoch.
        clips: number of training clips.
        changes: requested keys and values, set in every preset that has the key.
        max_epochs: upper limit on the epochs of every run; None for no limit.
    """

    base: JsonObject
    steps: int
    clips: int
    changes: Overrides = field(default_factory=Overrides)
    max_epochs: int | None = None

    def config(self, loss: str, options: JsonObject, steps: int, *, stops: bool = True) -> Config:
        """Return the config of a contender or rival.

        Args:
            loss: name of the loss, with the prefix of its proxy.
            options: drawn options.
            steps: largest number of training steps.
            stops: whether training ends after `PATIENCE` steps without improvement.
        """
        epochs = min(math.ceil(steps / self.steps), self.max_epochs or steps)
        schedule: JsonObject = {
            "training.epochs": epochs,
            "training.patience": min(math.ceil(PATIENCE / self.steps), epochs) if stops else 0,
        }
        return Overrides({"loss": loss, **current(options), **schedule}).applied(ConfigFile(self.base))

    def shipped(self, names: Sequence[str]) -> dict[str, Config]:
        """Return the configs of methods or presets on this data, with their own networks and schedules."""
        changes = self.changes | Overrides({"training.train_map": TRAIN_MAP})
        shared = RowSettings(str(self.base["data"]), changes, self.max_epochs)
        return {name: fitted_config(file_of(name), name, shared, {}) for name in names}


@dataclass(frozen=True)
class Experiment:
    """Inputs of the stages.

    Attributes:
        sets: name -> data set, in order of importance.
        seeds: largest number of seeds of each method.
        ledger: finished runs.
        drawn: name -> data set that the plan generates, by the share of partners.
        frozen: method -> options that were chosen on another set; empty if options are chosen on the same set.
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
        stage: name of the stage.
        key: key of its row.
        config: config with its seed.
        split: scored split; "valid" if options are chosen.
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
        """Return the run with the key of its config."""
        key = Key(data_set, method, seed, json.dumps(options, sort_keys=True))
        return cls(stage, key, config.seeded(seed), split, protocols)

    def job(self, folder: Path) -> Job:
        """Return the job of the run in a folder of runs."""
        digest = hashlib.sha256(self.key.options.encode()).hexdigest()[:8]
        name = file_name(f"{self.key.data_set}_{self.key.method}_{digest}_seed{self.key.seed}")
        protocols = tuple(PROTOCOLS[one] for one in self.protocols)
        return Job(folder / RUNS / self.stage / name, self.config, self.split, protocols=protocols)

    def result(self, outcome: SweepOutcome) -> "Result":
        """Read the result of the run."""
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
    """Result of a run.

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
