"""Read-outs: embeddings from the label-space vectors of a trained network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Temperature
from aadml.feature_extraction.ground.contracts import Condition, require_result
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import READOUTS
from aadml.objective.left_out import is_left_out
from aadml.objective.sections import EntrySection
from aadml.retrieval.evaluation import mean_figure

TEMPERATURES = (0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 1.5, 2.5, 4.0)


@dataclass(frozen=True)
class Readout:
    """A map from label-space vectors f (n, C) to embeddings (n, C).

    With "cosine", the embedding is f itself (AADML, section 3). With "posterior", the embedding is
    softmax(f / temperature). The inner product of two such embeddings is the probability that two items with
    independent classes have the same class. Ranking by this probability is optimal if the posteriors are calibrated
    (probability ranking principle, Robertson, 1977).

    Reference: Robertson, The probability ranking principle in IR, Journal of Documentation 1977, https://doi.org/10.1108/eb026647

    Attributes:
        name: "cosine" or "posterior".
        temperature: temperature of the softmax, for "posterior".

    Raises:
        InputError: another name, or a temperature that is not above 0. A model stores only these two values.
    """

    name: str
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in ("cosine", "posterior") or not self.temperature > 0:
            raise InputError(
                f"readout: there is no Readout({self.name!r}, {self.temperature!r}); pass 'cosine' or 'posterior', and "
                "a temperature above 0"
            )

    @property
    def similarity(self) -> str:
        """Similarity of the embeddings, by name: "cosine" or "dot"."""
        return "cosine" if self.name == "cosine" else "dot"

    def __call__(self, vectors: Tensor) -> Tensor:
        """Compute embeddings (n, C) of vectors (n, C)."""
        if self.name == "cosine":
            return vectors
        # in double precision, because a saturated softmax in float32 has ties
        return torch.softmax(vectors.double() / self.temperature, 1).float()


def _is_stored(candidates: list[Readout]) -> bool:
    """Return whether a model can store any of these read-outs as name and temperature."""
    return bool(candidates) and all(type(readout) is Readout for readout in candidates)


class ReadoutFactory(Protocol):
    """Function of options that returns candidate read-outs, to be compared on the validation clips."""

    def __call__(
        self, **options: Any
    ) -> Annotated[list[Readout], Condition("list of Readout (not empty, without subclasses)", _is_stored)]:
        """Return candidate read-outs."""
        ...


def cosine() -> list[Readout]:
    """Return the read-out that compares label-space vectors by cosine, as in AADML."""
    return [Readout("cosine")]


def posterior(*, temperature: Temperature | Literal["auto"] = "auto") -> list[Readout]:
    """Return one read-out per temperature; each read-out compares posteriors by inner product.

    Args:
        temperature: temperature of the softmax; "auto" chooses among TEMPERATURES on the validation clips.
    """
    if temperature == "auto":
        return [Readout("posterior", value) for value in TEMPERATURES]
    return [Readout("posterior", temperature)]


def auto(*, temperature: Temperature | Literal["auto"] = "auto") -> list[Readout]:
    """Return the cosine and posterior read-outs, to be compared on the validation clips.

    Args:
        temperature: temperature, as in `posterior`.
    """
    return cosine() + posterior(temperature=temperature)


class ReadoutSection(EntrySection):
    """The `readout` section."""

    key, table = "readout", READOUTS

    def candidates(self) -> list[Readout]:
        """Return the candidate read-outs; only "cosine" in a loaded model without the read-out's external code.

        Raises:
            InputError: external code returns anything but a list of at least one `Readout`. A subclass is not valid.
        """
        if is_left_out(self.table, self.name):
            return cosine()
        return require_result(self.bound()(), ReadoutFactory, "readout", self.name)


COSINE = ReadoutSection.of("cosine")


def choose_readout(candidates: Sequence[Readout], vectors: Mapping[Modality, Tensor], valid: Clips) -> Readout:
    """Return the first read-out with the highest validation MAP; without clips, the first of all read-outs.

    Args:
        candidates: read-outs to choose from.
        vectors: modality -> label-space vectors (n, C) of the validation clips.
        valid: the validation clips.
    """
    if len(candidates) == 1 or not len(valid):
        return candidates[0]
    return max(candidates, key=lambda readout: _score(readout, vectors, valid))


def _score(readout: Readout, vectors: Mapping[Modality, Tensor], valid: Clips) -> float:
    read = {modality: readout(values) for modality, values in vectors.items()}
    return mean_figure(valid.embedded(read, readout.similarity), "map")
