"""The `training` section of a config."""

from dataclasses import dataclass

from aadml.retrieval.requested import check_criterion
from feature_extraction.ground.errors import InputError

AUTO = "auto"
"""The criterion that a method brings."""


@dataclass(frozen=True)
class Training:
    """The `training` section of a config.

    Attributes:
        epochs: passes over the training clips (400: AADML, section 5.2).
        batch: clips a batch (400 on VEGAS, 200 on AVE: AADML, section 5.2).
        optimizer: "adam", "adamw", "adamax", "rmsprop" or "sgd".
        learning_rate: of all players that name no other (1e-4: AADML, section 5.2).
        betas: Adam's.
        weight_decay: as the optimizer means it.
        momentum: SGD's and RMSprop's.
        schedule: "constant", "step" (times `schedule_factor` every `schedule_every` epochs) or "plateau" (times
            `schedule_factor` once the validation score has not risen for `schedule_every` epochs, each time anew).
        schedule_every: epochs.
        schedule_factor: factor.
        schedule_threshold: a plateau's score has risen where it is more than so much above the best before.
        schedule_floor: the learning rate that no schedule goes below.
        clip_norm: largest gradient norm of a player; 0 for no clipping.
        select: "best" keeps the epoch of the best validation score, "last" the last one.
        criterion: the score of the validation clips that chooses the epoch, and that plateaus and patience look at:
            "auto" is the method's own (mean MAP for most), else a metric of `aadml list metrics` that is better when
            larger ("recall@10"), its mean over the directions.
        patience: stop once the validation score has not risen for so many epochs; 0 never stops early.
        valid_every: epochs between two validations.
        drop_last: leave out the last batch where it is smaller than the others.
    """

    epochs: int = 400
    batch: int = 400
    optimizer: str = "adam"
    learning_rate: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    momentum: float = 0.0
    schedule: str = "constant"
    schedule_every: int = 20
    schedule_factor: float = 0.1
    schedule_threshold: float = 0.0
    schedule_floor: float = 0.0
    clip_norm: float = 0.0
    select: str = "best"
    criterion: str = "auto"
    patience: int = 0
    valid_every: int = 1
    drop_last: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "valid_every"):
            if getattr(self, name) < 1:
                raise InputError(f"training.{name}: must be at least 1, not {getattr(self, name)}")
        for name, known in (("schedule", ("constant", "step", "plateau")), ("select", ("best", "last"))):
            if getattr(self, name) not in known:
                raise InputError(f"training.{name}: no '{getattr(self, name)}'; there are {', '.join(known)}")
        if self.criterion != AUTO:
            check_criterion(self.criterion)
