"""Training loop of all learners, independent of their methods: players, stages and hooks belong to the learner."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.comparison.processes import group
from aadml.data.captions.several_texts import of_epoch
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.json_values import read_as
from aadml.methods.training.compilation import compiled_objectives
from aadml.methods.training.learner import Epoch, Learner, Stage, Validation, batch_of, mismatch
from aadml.methods.training.optimization import Optimization, Step
from aadml.methods.training.precision import computed_in, resolved
from aadml.methods.training.session import Checkpoint, EpochWeights, Record, Session, numbers
from aadml.methods.training.settings import AUTO, Training
from aadml.methods.training.train_scores import can_be_scored, train_scores
from aadml.methods.training.warnings import gradient_warning, saturation_warning, share_warning
from aadml.retrieval.evaluation import mean_figure

ADVICE = "lower training.learning_rate, or look for extreme values in the features"

PROBED_EVERY = 10
"""Epochs between two calls of the players' probes, which also run in the last epoch; a call may take a step's time."""


def train(learner: Learner, train: Clips, valid: Clips, settings: Training, session: Session, *, seed: int) -> None:
    """Train `learner` through its stages, and load the weights of the epoch that `training.select` chooses.

    All draws of an epoch, such as order, dropout, selections and texts, derive only from `seed`, the stage and the
    epoch's number. A training run that is continued after an interruption therefore ends with exactly the weights
    of an uninterrupted run.

    Args:
        learner: learner to train, on its device.
        train: clips to fit on.
        valid: clips for choosing the epoch; without clips, the last epoch is chosen.
        settings: the `training` section.
        session: destination of the log and of checkpoints, and source of the state to continue from.
        seed: seed of all draws.

    Raises:
        InputError: the loss or weights became NaN or infinite in the first epoch, or the learner cannot be trained with
            these settings or clips.
        DamagedFileError: the stored state or weights do not fit the learner.
    """
    with torch.random.fork_rng(devices=[]), group.divided():
        clips = _to_device(train, learner.device)
        _Loop(learner, clips, clips, valid, settings.chosen_on(len(valid)), session, seed).run()
    _load_best(learner, session)
    learner.eval()
    learner.finish(train, valid)


@dataclass
class _Progress:
    """Progress of training, saved as JSON with the weights."""

    stage: int = 0
    epoch: int = 0
    epochs_done: int = 0
    best: float | None = None
    since_best: int = 0
    learning_rate_factor: float = 1.0
    risen_to: float | None = None
    since_risen: int = 0


@dataclass
class _Loop:
    learner: Learner
    all_train: Clips
    train: Clips  # with the texts drawn for the epoch
    valid: Clips
    settings: Training
    session: Session
    seed: int
    progress: _Progress = field(default_factory=_Progress)

    def run(self) -> None:
        """Run all stages that are not done yet.

        Raises:
            InputError: see `train`.
        """
        if self.settings.criterion != AUTO and not self.learner.takes_criterion:
            raise InputError(
                f"training.criterion is {self.settings.criterion}, but the stages of this method have different "
                "scores; set training.criterion to auto"
            )
        stages = self.learner.stages(self.settings.epochs)
        self.precision = resolved(self.settings.precision, self.learner)
        self.compiled = compiled_objectives(self.learner, self.settings)
        self.optimization = Optimization(self.learner.players(), self.settings)
        self._continue(_of_first(self.session.resume()))
        self.session.plan(sum(stage.epochs for stage in stages), self.progress.epochs_done)
        for number in range(self.progress.stage, len(stages)):
            if number != self.progress.stage:
                self._enter(stages[number], number)
            if not self._run_stage(stages[number]):
                return
            if stages[number].scored:
                _load_best(self.learner, self.session)
                with group.alone():
                    self.session.finish_stage(stages[number].name)

    def _run_stage(self, stage: Stage) -> bool:
        """Run the remaining epochs of a stage, and return whether training continues."""
        while not self._is_over(stage):
            record = self._run_epoch(stage)
            if divergence := self._divergence(numbers(record)["loss"]):
                self._stop(divergence)
                return False
            self.progress.epoch += 1
            self.progress.epochs_done += 1
            record = {**record, **self._score(stage)}
            last = self._is_over(stage)
            record = {**record, **self._score_train(last=last)}
            with group.alone():
                self.session.log(record, self._weights(last=last))
            self._warn()
            self.session.save(self._checkpoint())
        return True

    def _is_over(self, stage: Stage) -> bool:
        """Return whether a stage has no more epochs, by their number or by `training.patience`."""
        return self.progress.epoch >= stage.epochs or 0 < self.settings.patience <= self.progress.since_best

    def _weights(self, *, last: bool) -> EpochWeights:
        return EpochWeights(self.learner, self.settings.batch, last, self.train.class_names)

    def _run_epoch(self, stage: Stage) -> Record:
        """Train every player of the stage on every batch of an epoch, and return the record of the epoch."""
        started = time.perf_counter()
        epoch = Epoch(stage.name, self.progress.epoch, stage.epochs)
        generator = _seeded(self.seed, self.progress.stage, self.progress.epoch)
        self.train = of_epoch(self.all_train, seed=self.seed, epoch=self.progress.epochs_done)
        self.learner.eval()
        with computed_in(self.precision, self.learner):
            self.learner.before_epoch(self.train, epoch)
            self.learner.train()
            batches = stage.batches(self.train, epoch, generator) if stage.batches else self._shuffled(generator)
            batches = list(batches) if self.optimization.changes_by_step else batches
            rate = self._set_rates(epoch, batches)
            means = self._steps(batches, stage, epoch, generator)
        self.learner.eval()
        seconds = round(time.perf_counter() - started, 4)
        record: Record = {"epoch": self.progress.epochs_done + 1, "stage": stage.name, "learning_rate": rate}
        return {**record, **means, "seconds": seconds}

    def _steps(
        self, batches: Iterable[Tensor], stage: Stage, epoch: Epoch, generator: torch.Generator
    ) -> dict[str, float]:
        """Run the steps of one epoch, and return numbers of the record, such as the mean of each scalar of the loss."""
        players = {n: p for n, p in self.learner.players().items() if stage.players is None or n in stage.players}
        scalars: dict[str, list[Tensor]] = {}
        steps = 0
        for steps, rows in enumerate(batches, 1):
            self.session.step(steps)
            if steps > 1 and self.optimization.changes_by_step:
                self._set_rates(epoch, batches, steps - 1)
            batch, first = batch_of(self.train, rows, self.learner.device, generator, epoch), steps == 1
            probed = first and (epoch.number % PROBED_EVERY == 0 or epoch.number + 1 == epoch.total)
            for name, player in players.items():
                prefix = "" if len(players) == 1 else f"{name} "
                for objective in self.compiled:
                    objective.compiled = not probed  # a probe computes gradients twice
                parts = self.optimization.step(name, player, batch, first=first, probed=probed)
                for key, value in parts.items():
                    scalars.setdefault(prefix + key, []).append(value.detach().float())
        means = {key: float(torch.stack(values).mean()) for key, values in scalars.items()}
        first_values = {key: float(values[0]) for key, values in scalars.items()}
        return {"loss": _loss(means)} | means | {"loss_of_first_batch": _loss(first_values), "steps": steps}

    def _set_rates(self, epoch: Epoch, batches: Iterable[Tensor], done: int = 0) -> float:
        """Set the learning rates for the step after `done` steps of an epoch; return the rate for the log."""
        step = Step(epoch.number, epoch.total, done, max(1, len(batches)) if isinstance(batches, list) else 1)
        return self.optimization.set_rates(step, self.progress.learning_rate_factor)

    def _score(self, stage: Stage) -> dict[str, float]:
        """Score the validation clips, and store the weights if `training.select` chooses this epoch."""
        if not len(self.valid):
            self._keep({})
            return {}
        self.learner.calibrate(self.valid)
        scores, criterion = group.by_first(self._validated), self.settings.criterion
        score, best = scores[self.learner.criterion if criterion == AUTO else criterion], self.progress.best
        better = best is None or score > best
        self.progress.since_best = 0 if better else self.progress.since_best + stage.validated
        self.progress.best = score if better else best
        if better or self.settings.select == "last":
            self._keep(scores)
        if self.settings.schedule == "plateau" and stage.validated:
            self._lower_on_plateau(score)
        return {f"valid {key}": value for key, value in scores.items()}

    def _validated(self) -> dict[str, float]:
        """Score the validation clips, and report warnings about their embeddings."""
        valid = Validation(self.learner, self.valid)
        scores, criterion = self.learner.validate(valid), self.settings.criterion
        for warning in self.learner.warnings(valid):
            self.session.warn(f"epoch {self.progress.epochs_done}: {warning}")
        return scores if criterion == AUTO else scores | {criterion: mean_figure(valid.embeddings, criterion)}

    def _score_train(self, *, last: bool) -> dict[str, float]:
        """Return scores of the training clips, and losses of the training and validation clips.

        The result is empty in epochs that `training.train_map` skips. The last epoch of a stage is skipped only if
        `training.train_map` is 0. The result is also empty if some features of the training clips are not vectors.
        """
        every = self.settings.train_map
        if not every or (self.progress.epoch % every and not last) or not can_be_scored(self.train):
            return {}
        return group.by_first(self._train_scored)

    def _train_scored(self) -> dict[str, float]:
        scores = {f"train {k}": value for k, value in train_scores(self.learner.embed_clips(self.train)).items()}
        weights = self._weights(last=False)
        losses = {"train loss": weights.held_out_loss(self.train), "valid loss": weights.held_out_loss(self.valid)}
        return scores | {key: loss for key, loss in losses.items() if loss is not None}

    def _lower_on_plateau(self, score: float) -> None:
        """Lower the learning rate after `schedule_every` epochs without a rise of the score; restart the count."""
        progress, settings = self.progress, self.settings
        if progress.risen_to is None or score > progress.risen_to + settings.schedule_threshold:
            progress.risen_to, progress.since_risen = score, 0
            return
        progress.since_risen += 1
        if progress.since_risen >= settings.schedule_every:
            progress.learning_rate_factor *= settings.schedule_factor
            progress.since_risen = 0

    def _warn(self) -> None:
        """Report warnings about the gradients, and about a metric loss without active terms."""
        history = [numbers(record) for record in self.session.history]
        latest = history[-1].items()
        warnings = [gradient_warning(value) for key, value in latest if key.endswith("gradient_norm")]
        warnings += [share_warning(value) for key, value in latest if key.endswith("metric_gradient_share")]
        shares = [[value for key, value in record.items() if key.endswith("active")] for record in history]
        warnings.append(saturation_warning([max(values) for values in shares if values]))
        for warning in filter(None, warnings):
            self.session.warn(f"epoch {self.progress.epochs_done}: {warning}")

    def _keep(self, scores: dict[str, float]) -> None:
        facts = {"epoch": self.progress.epochs_done} | scores
        self.session.keep_best(Checkpoint(self.learner.state_dict(), facts))

    def _shuffled(self, generator: torch.Generator) -> Iterator[Tensor]:
        """Yield the rows (b,) of each batch, in random order.

        With `drop_last`, a last batch below the configured size is omitted. A remaining last batch of one clip is
        added to the batch before. The only batch of an epoch is never changed.
        """
        parts: Sequence[Tensor] = torch.randperm(len(self.train), generator=generator).split(self.settings.batch)
        if len(parts) > 1 and self.settings.drop_last and len(parts[-1]) < self.settings.batch:
            parts = parts[:-1]
        if len(parts) > 1 and len(parts[-1]) == 1:
            parts = (*parts[:-2], torch.cat(tuple(parts[-2:])))
        yield from parts

    def _enter(self, stage: Stage, number: int) -> None:
        """Set weights, optimizer and best score for the beginning of a stage."""
        if stage.start_from_best:
            _load_best(self.learner, self.session)
        if not stage.keep_optimizer:
            self.optimization.reset()
        best = self.progress.best if stage.keep_best else None
        self.progress = _Progress(number, 0, self.progress.epochs_done, best)

    def _divergence(self, loss: float) -> str | None:
        """Return a clause about the mean loss or the weights of an epoch that are not finite; None if all are finite.

        A finite loss may have a gradient that is NaN or infinite.
        """
        if not math.isfinite(loss):
            return f"the loss became {loss}"
        weights = (weight for player in self.learner.players().values() for weight in player.parameters)
        finite = all(bool(torch.isfinite(weight).all()) for weight in weights)
        return None if finite else "weights became NaN or infinite"

    def _stop(self, divergence: str) -> None:
        if _of_first(self.session.best()) is None:
            raise InputError(f"training: {divergence} in the first epoch; {ADVICE}")
        epoch = self.progress.epochs_done + 1
        self.session.warn(f"{divergence} in epoch {epoch}, so training ended; {ADVICE}")

    def _checkpoint(self) -> Checkpoint:
        tensors = {f"learner.{k}": v for k, v in self.learner.state_dict().items()} | self.optimization.state()
        return Checkpoint(tensors, dict(vars(self.progress)))

    def _continue(self, checkpoint: Checkpoint | None) -> None:
        if checkpoint is None:
            return
        weights = {k.removeprefix("learner."): v for k, v in checkpoint.tensors.items() if k.startswith("learner.")}
        with _saved_by_this_config():
            self.learner.load_state_dict(weights)
            self.optimization.load({k: v for k, v in checkpoint.tensors.items() if not k.startswith("learner.")})
        self.progress = read_as(_Progress, checkpoint.facts, "the state of the training run")


def _load_best(learner: Learner, session: Session) -> None:
    best = _of_first(session.best())
    if best is not None:
        with _saved_by_this_config():
            learner.load_state_dict(dict(best.tensors))


@contextmanager
def _saved_by_this_config() -> Iterator[None]:
    """Return a context that raises DamagedFileError if a stored state does not fit the learner or its optimizers."""
    try:
        yield
    except (RuntimeError, ValueError, KeyError) as error:
        raise DamagedFileError(
            f"the weights that the run stored do not fit its config ({mismatch(error)}); restore the folder of the run "
            "from a copy, or train anew"
        ) from error


def _of_first(checkpoint: Checkpoint | None) -> Checkpoint | None:
    """Return the checkpoint of the first worker; other workers do not read the run folder."""
    content = group.tensors_of_first(None if checkpoint is None else (checkpoint.tensors, checkpoint.facts))
    return None if content is None else Checkpoint(*content)


def _loss(scalars: Mapping[str, float]) -> float:
    """Return the loss among the scalars; with several players, the sum of their losses."""
    return scalars["loss"] if "loss" in scalars else sum(v for k, v in scalars.items() if k.endswith(" loss"))


def _seeded(seed: int, stage: int, epoch: int) -> torch.Generator:
    """Seed torch's global generator for one epoch, and return a new generator for the same epoch.

    Dropout uses the global generator. Batch order and selections use the new generator.
    """
    mixed = (seed * 1_000_003 + stage * 10_007 + epoch) & 0x7FFF_FFFF_FFFF
    torch.manual_seed(mixed)
    return torch.Generator().manual_seed(mixed + 1)


def _to_device(clips: Clips, device: torch.device) -> Clips:
    features: dict[Modality, Features] = {
        m: f.to(device) if isinstance(f, Tensor) else f for m, f in clips.features.items()
    }
    return replace(clips, features=features, labels=clips.labels.to(device))
