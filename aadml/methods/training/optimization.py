"""Optimizers of the players of a learner: built from the `training` section, saved and restored as plain tensors."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison.processes import group
from aadml.comparison.processes.gradients import summed_gradients
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods.training.learner import Batch, Player
from aadml.methods.training.settings import OPTIMIZERS, Training


@dataclass(frozen=True)
class Step:
    """Position of a step in its stage.

    Attributes:
        epoch: number of finished epochs of the stage.
        epochs: number of epochs of the stage.
        number: number of finished steps of the epoch.
        steps: number of steps of the epoch.
    """

    epoch: int
    epochs: int
    number: int = 0
    steps: int = 1

    def decay(self, settings: Training) -> float:
        """Return the schedule's factor of the learning rate at this step; 1 for "constant" and "plateau"."""
        if settings.schedule == "step":
            return settings.schedule_factor ** (self.epoch // settings.schedule_every)
        if settings.schedule != "cosine":
            return 1.0
        done = self.epoch + self.number / self.steps - settings.warmup
        return (1 + math.cos(math.pi * max(0.0, done) / max(done, self.epochs - settings.warmup, 1e-9))) / 2

    def rise(self, warmup: float) -> float:
        """Return the factor of the learning rate in a linear warm-up of `warmup` epochs.

        The factor is between 0 and 1 during the warm-up, and 1 afterwards.
        """
        end = self.epoch + (self.number + 1) / self.steps
        return end / warmup if end < warmup else 1.0


class Optimization:
    """Optimizers of a training run, one per player.

    Raises:
        InputError: the name of an optimizer is unknown.
    """

    def __init__(self, players: Mapping[str, Player], settings: Training) -> None:
        self._players = players
        self._settings = settings
        self.reset()

    def reset(self) -> None:
        """Rebuild the optimizers, without momentum or step counts."""
        self._optimizers = {
            name: build_optimizer(_by_rate(player), player.settings(self._settings))
            for name, player in self._players.items()
        }
        self._full_rates = {
            name: [group["lr"] for group in optimizer.param_groups] for name, optimizer in self._optimizers.items()
        }

    @property
    def changes_by_step(self) -> bool:
        """Whether the learning rate may differ between the steps of an epoch."""
        return bool(self._settings.warmup) or self._settings.schedule == "cosine"

    def set_rates(self, step: Step, factor: float) -> float:
        """Set the learning rates for a step, and return the first player's first rate, for the log.

        Args:
            step: position of the step in its stage.
            factor: factor of the learning rate after all plateaus so far, for players with the schedule "plateau".
        """
        for name, optimizer in self._optimizers.items():
            settings = self._players[name].settings(self._settings)
            lowered = factor if settings.schedule == "plateau" else step.decay(settings)
            for parameters, rate in zip(optimizer.param_groups, self._full_rates[name], strict=True):
                floor = min(settings.schedule_floor, rate)
                parameters["lr"] = max(floor, rate * lowered) * step.rise(settings.warmup)
        first: float = next(iter(self._optimizers.values())).param_groups[0]["lr"]
        return first

    def step(
        self, name: str, player: Player, batch: Batch, *, first: bool = False, probed: bool = False
    ) -> Mapping[str, Tensor]:
        """Run one step of a player's optimizer on `batch`, unless the loss is not finite or has no gradient.

        On a GPU, the player's `after_step` is also called after a loss that is not finite, which ends the training.

        Args:
            name: name of the player.
            player: player whose parameters are updated.
            batch: input of the player's loss.
            first: whether to return the gradient norm before clipping, as "gradient_norm".
            probed: whether to run the player's probe on the loss.

        Returns:
            The named scalars of the loss, summed over all workers, and the scalars of `first` and of the probe.
        """
        optimizer = self._optimizers[name]
        optimizer.zero_grad(set_to_none=True)
        parts = player.loss(batch)
        loss = parts["loss"]
        probe = player.probe(parts) if probed and player.probe is not None and loss.requires_grad else {}
        with summed_gradients(player.parameters):
            if loss.requires_grad:
                loss.backward()
        trains = loss.requires_grad or any(p.grad is not None for p in player.parameters)  # of another worker
        parts = dict(zip(parts, group.summed(list(parts.values())), strict=True)) | dict(probe)
        if first:
            parts["gradient_norm"] = nn.utils.get_total_norm([p.grad for p in player.parameters if p.grad is not None])
        if trains:
            if clip_norm := player.settings(self._settings).clip_norm:
                nn.utils.clip_grad_norm_(player.parameters, clip_norm)
            finite = torch.isfinite(parts["loss"])
            if _stepped(optimizer, finite, waits=not finite.is_cuda):
                player.after_step()
        return parts

    def state(self) -> dict[str, Tensor]:
        """Return every optimizer's state, named `optimizer.<player>.<number>.<key>`."""
        return {
            f"optimizer.{name}.{number}.{key}": torch.as_tensor(value)
            for name, optimizer in self._optimizers.items()
            for number, entries in optimizer.state_dict()["state"].items()
            for key, value in entries.items()
            if value is not None
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the result of `state`."""
        entries: dict[str, dict[int, dict[str, Tensor]]] = {name: {} for name in self._optimizers}
        for path, value in state.items():
            name, number, key = path.removeprefix("optimizer.").rsplit(".", 2)
            entries[name].setdefault(int(number), {})[key] = value
        for name, optimizer in self._optimizers.items():
            optimizer.load_state_dict({"state": entries[name], "param_groups": optimizer.state_dict()["param_groups"]})


def _stepped(optimizer: torch.optim.Optimizer, finite: Tensor, *, waits: bool) -> bool:
    """Change the weights by a step of the optimizer if the flag is True; return False if the flag was read as False.

    If the host may not wait for the flag, fused Adam reads the flag on the device, as for `torch.amp.GradScaler`. Other
    optimizers wait: fused SGD would keep uninitialized momentum.
    """
    if not waits and optimizer.defaults.get("fused") and isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW):
        optimizer.grad_scale, optimizer.found_inf = None, (~finite).float()  # type: ignore[attr-defined]
    elif not finite:
        return False
    optimizer.step()
    return True


def _by_rate(player: Player) -> list[Any]:
    """Return the parameters of a player, in torch's parameter groups if some have their own learning rate."""
    groups = {rate: [p for p in player.parameters if player.rates.get(p) == rate] for rate in player.rates.values()}
    rest = [p for p in player.parameters if p not in player.rates]
    if not groups:
        return rest
    return [{"params": rest}] * bool(rest) + [{"params": members, "lr": rate} for rate, members in groups.items()]


def build_optimizer(parameters: Iterable[Any], settings: Training) -> torch.optim.Optimizer:
    """Build the optimizer of `settings` for parameters, or for torch's parameter groups.

    If torch has a fused implementation of the optimizer, the optimizer uses that implementation.

    Raises:
        InputError: the name of the optimizer is unknown.
    """
    build = _without_compiler(lookup(OPTIMIZERS, settings.optimizer, "training.optimizer"))
    known = inspect.signature(build).parameters
    options = {
        "lr": settings.learning_rate,
        "weight_decay": settings.weight_decay,
        "betas": settings.betas,
        "momentum": settings.momentum,
        "fused": True,
    }
    return build(parameters, **{key: value for key, value in options.items() if key in known})


_COMPILED = ("add_param_group", "state_dict", "load_state_dict", "zero_grad")


@cache
def _without_compiler(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """Return a subclass of the optimizer `kind`; the methods of the subclass do not import `torch._dynamo`.

    The import takes 1.2 s, and only compiled steps need the import.
    """
    plain = {name: inspect.unwrap(getattr(kind, name)) for name in _COMPILED}
    return type(kind.__name__, (kind,), {**plain, "step": torch.no_grad()(inspect.unwrap(kind.step))})
