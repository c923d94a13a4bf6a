"""Optimizers of the players of a learner: built from the `training` section, saved and restored as plain tensors."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import torch
from torch import Tensor, nn

from aadml.comparison.processes import group
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods.training.learner import Batch, Player
from aadml.methods.training.settings import OPTIMIZERS, Training


class Optimization:
    """Optimizers of a training run, one per player."""

    def __init__(self, players: Mapping[str, Player], settings: Training) -> None:
        self._players = players
        self._settings = settings
        self.reset()

    def reset(self) -> None:
        """Rebuild the optimizers, without momentum or step counts."""
        self._optimizers = {
            name: build_optimizer(player.parameters, player.settings(self._settings))
            for name, player in self._players.items()
        }

    def set_epoch(self, epoch: int, factor: float) -> float:
        """Set the learning rates for an epoch of a stage, and return the first player's rate, for the log.

        Args:
            epoch: number of finished epochs of the stage.
            factor: factor of the learning rate after all plateaus so far.
        """
        rates = []
        for name, optimizer in self._optimizers.items():
            settings = self._players[name].settings(self._settings)
            steps = epoch // settings.schedule_every if settings.schedule == "step" else 0
            floor = min(settings.schedule_floor, settings.learning_rate)
            rates.append(max(floor, settings.learning_rate * factor * settings.schedule_factor**steps))
            for parameters in optimizer.param_groups:
                parameters["lr"] = rates[-1]
        return rates[0]

    def step(self, name: str, player: Player, batch: Batch, *, probed: bool = False) -> Mapping[str, Tensor]:
        """Run one step of a player's optimizer on `batch`.

        Args:
            name: name of the player.
            player: player whose parameters are updated.
            batch: input of the player's loss.
            probed: whether to run the player's probe on the loss.

        Returns:
            The named scalars of the loss, summed over all processes, and the scalars of the probe.
        """
        optimizer = self._optimizers[name]
        optimizer.zero_grad(set_to_none=True)
        parts = player.loss(batch)
        loss = parts["loss"]
        probe = player.probe(parts) if probed and player.probe is not None and loss.requires_grad else {}
        if loss.requires_grad:
            loss.backward()
            group.sum_gradients(player.parameters)
        parts = dict(zip(parts, group.summed(list(parts.values())), strict=True)) | dict(probe)
        if loss.requires_grad:
            if clip_norm := player.settings(self._settings).clip_norm:
                nn.utils.clip_grad_norm_(player.parameters, clip_norm)
            if bool(torch.isfinite(parts["loss"])):
                optimizer.step()
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


def build_optimizer(parameters: Iterable[nn.Parameter], settings: Training) -> torch.optim.Optimizer:
    """Build the optimizer of `settings`, with the fused implementation if torch has one."""
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
    """Return an optimizer whose methods do not import `torch._dynamo`, which only compiled steps need (1.2 s)."""
    plain = {name: inspect.unwrap(getattr(kind, name)) for name in _COMPILED}
    return type(kind.__name__, (kind,), {**plain, "step": torch.no_grad()(inspect.unwrap(kind.step))})
