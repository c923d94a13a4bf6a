"""What a certificate of fidelity is: the same weights and inputs, here and in the released code, and how far apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Arrays = Mapping[str, Any]
Errors = Mapping[str, float]

EXACT = 1e-6
ROUNDING = 1e-12


@dataclass(frozen=True)
class Certificate:
    """One method or loss held against what its source made of the same numbers.

    Attributes:
        subject: name here: of a method, a loss, an objective, a network or a front end.
        file: the reference file, below the folder of references, without suffix; "" for a second implementation.
        source: repository and function.
        compared: what is compared, by the names under which `measure` gives its errors.
        repairs: what differs on purpose, by the names under which `measure` gives how much.
        deviations: what is different or not compared, in words.
        tolerance: the largest error that passes.
        measure: reference arrays -> the largest relative error of each thing compared, and of each repair.
        by_hand: whether the source could not be run and its formula was written out for the reference.
        slow: whether it takes more than a second or two.
        folder: the folder of its references, beside the others.
    """

    subject: str
    file: str
    source: str
    compared: tuple[str, ...]
    measure: Callable[[Arrays], Errors]
    repairs: tuple[str, ...] = ()
    deviations: str = ""
    tolerance: float = EXACT
    by_hand: bool = False
    slow: bool = False
    folder: str = "references"

    def errors(self, references: Path) -> Errors:
        """Measure, on the reference file; `references` is the folder of references to single steps."""
        return self.measure({} if not self.file else read(references.parent / self.folder / f"{self.file}.npz"))


def read(path: Path) -> dict[str, Any]:
    """Read a reference file: float64 tensors where its numbers are floats, lists where it holds texts."""
    arrays: dict[str, Any] = {}
    with np.load(path, allow_pickle=False) as stored:
        for name in stored.files:
            values = stored[name]
            if values.dtype.kind == "U":
                arrays[name] = [str(text) for text in np.atleast_1d(values)]
            else:
                kept = np.array(values, dtype=np.float64 if values.dtype.kind == "f" else None)
                arrays[name] = torch.from_numpy(kept)
    return arrays


def error(found: Tensor, reference: Tensor) -> float:
    """Largest absolute difference over the largest absolute reference value, over 1 where that is mere rounding."""
    assert found.shape == reference.shape, f"{tuple(found.shape)} found, {tuple(reference.shape)} in the reference"
    if not reference.numel():
        return 0.0
    difference = (found.detach().double() - reference.detach().double()).abs().max()
    scale = float(reference.detach().double().abs().max())
    return float(difference) / (scale if scale > ROUNDING else 1.0)


def worst(pairs: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Return the largest error of several pairs of found and reference."""
    return max(error(found, reference) for found, reference in pairs)


def value_and_gradients(value: Tensor, points: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Differentiate a scalar by `points`; what it does not depend on has the gradient 0."""
    found = torch.autograd.grad(value, points, allow_unused=True, retain_graph=True)
    return value.detach(), [torch.zeros_like(p) if g is None else g for p, g in zip(points, found, strict=True)]


def leaves(arrays: Arrays, *names: str) -> list[Tensor]:
    """Take arrays as points to differentiate by."""
    return [arrays[name].clone().requires_grad_() for name in names]


def put(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give a module's parameters the values of the source's, by the module's own names, all of them."""
    missing, unexpected = module.load_state_dict(dict(weights), strict=False)
    assert not unexpected, f"the module has no {unexpected}"
    assert not set(missing) & {name for name, _ in module.named_parameters()}, f"no weights for {missing}"
