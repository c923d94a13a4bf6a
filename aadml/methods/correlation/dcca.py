"""DCCA: deep canonical correlation analysis (Andrew et al., ICML 2013), and C-DCCA, its cluster form.

Reference: Andrew et al., Deep canonical correlation analysis, ICML 2013, https://proceedings.mlr.press/v28/andrew13.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Dropout, Layers, Ridge, Share, Width
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.methods.correlation.algebra import covariance, mixed_cross_covariance
from aadml.methods.correlation.projection import solve_buffers
from aadml.methods.method import Context, Method
from aadml.methods.networks import layers
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.learner import Batch, Learner, Player
from aadml.methods.training.settings import Training

EIGENVALUE_FLOOR = 1e-9
CorrelationName = Literal["trace", "squared", "source"]


@dataclass(frozen=True, kw_only=True)
class CorrelationOptions:
    """Options of deep CCA and its cluster form.

    Attributes:
        dimension: number of directions of the linear solution on the encoders' outputs (10: code of the AADML paper's
            group).
        outputs: size of the encoders' last layer (10, or 100 in the cluster form: same source).
        dropout: share of units dropped (same source).
        ridge: constant added to the diagonals of the covariances (1e-3 to 1e-4: same source).
        objective: "trace", "squared" or "source" (see `total_correlation`).
    """

    dimension: Width = 10
    outputs: Width = 10
    dropout: Dropout = 0.2
    ridge: Annotated[Ridge, Tuning(1e-4, 1e-3, 1e-2)] = 1e-3
    objective: CorrelationName = "trace"


OF_PAIRS, OF_CLUSTERS = CorrelationOptions(), CorrelationOptions(outputs=100)


def total_correlation(
    first: Tensor,
    second: Tensor,
    cross: Tensor,
    objective: CorrelationName = "trace",
    *,
    top: int = 0,
    ridge: float = 0.0,
) -> Tensor:
    """Compute the total correlation of two modalities in one of three forms, with a finite gradient.

        T = S_aa^{-1/2} S_av S_vv^{-1/2}, with singular values s;   "trace": sum of s;   "squared": sum of s^2
        "source": sum of sqrt(s^2 + ridge) over the `top` largest s, as in the released code (docs/fidelity.md)

    Args:
        first: S_aa (d, d), covariance of the first modality, with its ridge.
        second: S_vv (d, d), covariance of the second modality, with its ridge.
        cross: S_av (d, d), cross-covariance.
        objective: "trace" (Andrew et al., 2013), "squared" or "source".
        top: number of singular values for "source"; 0 for all.
        ridge: ridge in the formula of "source".

    Returns:
        A scalar in the precision of the arguments.
    """
    whitened_first = torch.linalg.solve_triangular(torch.linalg.cholesky(first), cross, upper=False)
    whitened = torch.linalg.solve_triangular(torch.linalg.cholesky(second), whitened_first.T, upper=False)
    squares: Tensor = whitened.square().sum()
    if objective == "squared":
        return squares
    # the Cholesky factor whitens as the symmetric root does, up to a rotation, which leaves singular values unchanged
    gram = whitened.T @ whitened
    if objective == "source":
        shifted: Tensor = torch.linalg.eigvalsh(gram) + ridge
        return shifted.clamp_min(EIGENVALUE_FLOOR).sqrt()[-(top or len(shifted)) :].sum()
    scale = torch.eye(len(gram), dtype=gram.dtype, device=gram.device) * EIGENVALUE_FLOOR
    values: Tensor = torch.linalg.eigvalsh(gram + scale).clamp_min(EIGENVALUE_FLOOR).sqrt()
    return values.sum()


class CorrelationLearner(Learner):
    """Encoders trained for correlated outputs, and a linear solution on their outputs.

    Args:
        context: dimensions of the two modalities.
        hidden: modality -> sizes of the hidden layers.
        options: see `CorrelationOptions`.
        pair_weight: weight of the pairs in the cross-covariance, besides clusters; None for only pairs.

    Raises:
        InputError: there are more directions than outputs.
    """

    in_bfloat16 = "no"
    normalizes_batches = True

    def __init__(
        self,
        context: Context,
        *,
        hidden: Mapping[Modality, tuple[int, ...]],
        options: CorrelationOptions,
        pair_weight: float | None = None,
    ) -> None:
        super().__init__()
        outputs, dimension = options.outputs, options.dimension
        if dimension > outputs:
            raise InputError(
                f"method.dimension is {dimension}, but the encoders have only {outputs} outputs; lower "
                "method.dimension, or raise method.outputs"
            )
        self.names = tuple(hidden)
        self.ridge, self.objective, self.dimension = options.ridge, options.objective, dimension
        self.pair_weight = pair_weight
        self.encoders = nn.ModuleDict(
            {m: _encoder(context.dimensions[m], hidden[m], outputs, options.dropout) for m in hidden}
        )
        for name in self.names:
            self.register_buffer(f"mean_{name}", torch.zeros(outputs))
            self.register_buffer(f"weights_{name}", torch.eye(outputs)[:, :dimension].clone())

    def players(self) -> Mapping[str, Player]:
        """Return one player: the parameters of both encoders."""
        return {"encoders": Player(list(self.parameters()), self._loss)}

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Encode and project a batch (b, d) -> (b, dimension)."""
        mean, weights = self.get_buffer(f"mean_{modality}"), self.get_buffer(f"weights_{modality}")
        return ((self._outputs(features, modality) - mean.double()) @ weights.double()).float()

    def calibrate(self, valid: Clips) -> None:
        """Solve the linear problem on outputs of the training clips, so that the complete method is validated."""
        self._solve()

    def before_epoch(self, train: Clips, epoch: object) -> None:
        """Store the training clips, whose outputs define the linear problem."""
        self._train = train

    def finish(self, train: Clips, valid: Clips) -> None:
        """Solve the linear problem for the best weights."""
        self._train = train
        self._solve()

    def _outputs(self, features: Tensor, modality: Modality) -> Tensor:
        """Compute the outputs (b, outputs) of an encoder for features (b, d), in float64.

        In float32, the linear solution would scale up rounding errors.
        """
        encoder = self.encoders[modality]
        state = (*encoder.named_parameters(), *encoder.named_buffers())
        precise = {name: value.double() if value.is_floating_point() else value for name, value in state}
        outputs = torch.func.functional_call(encoder, precise, (features.double(),))
        assert isinstance(outputs, Tensor)
        return outputs

    def _solve(self) -> None:
        with torch.no_grad():
            outputs = {m: self._outputs(self._train.matrix(m).to(self.device), m) for m in self.names}
        solve_buffers(
            self, outputs, self._train.labels, pair_weight=self.pair_weight, ridge=self.ridge, dimension=self.dimension
        )

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        outputs = [self.encoders[m](batch.features[m]).double() for m in self.names]
        first, second = (values - values.mean(0) for values in outputs)
        cross = mixed_cross_covariance(first, second, batch.labels, self.pair_weight)
        covariances = covariance(first, self.ridge), covariance(second, self.ridge)
        correlation = total_correlation(*covariances, cross, self.objective, top=self.dimension, ridge=self.ridge)
        return {"loss": -correlation, "correlation": correlation}


def dcca(
    context: Context,
    settings: Training,
    *,
    options: CorrelationOptions = OF_PAIRS,
    hidden_audio: Layers = (128, 128, 64),
    hidden_visual: Layers = (256, 256, 128),
) -> Method:
    """Build deep CCA: encoders trained for the total correlation of a batch (Andrew et al., ICML 2013).

    Args:
        context: dimensions of the two modalities.
        settings: the `training` section; its batch must be well above `options.outputs`.
        options: see `CorrelationOptions`.
        hidden_audio: hidden layers of the first modality (code of the AADML paper's group).
        hidden_visual: hidden layers of the second modality (same source).

    Raises:
        InputError: clips without exactly two modalities of vectors, a batch not larger than `options.outputs`, more
            directions than outputs, or `settings` that the method does not support.
    """
    hidden = dict(zip(context.need_pair("dcca"), (hidden_audio, hidden_visual), strict=True))
    _check_batch(settings, options.outputs, "dcca")
    learner = CorrelationLearner(context, hidden=hidden, options=options)
    return LearnedMethod(learner, context, settings)


def c_dcca(
    context: Context,
    settings: Training,
    *,
    options: CorrelationOptions = OF_CLUSTERS,
    hidden: Layers = (100, 100, 100),
    pair_weight: Share = 0.2,
) -> Method:
    """Build cluster deep CCA, whose cross-covariance also pairs all clips of a class (Zeng et al., TOMM 2020).

    Reference: Zeng et al., Deep triplet neural networks with cluster-CCA for audio-visual cross-modal retrieval, ACM
    TOMM 2020, https://doi.org/10.1145/3387164

    Args:
        context: dimensions of the two modalities.
        settings: the `training` section; its batch must be well above `options.outputs`.
        options: see `CorrelationOptions`.
        hidden: hidden layers of both encoders (code of the AADML paper's group).
        pair_weight: weight of the pairs in the cross-covariance (0.2: same source).

    Raises:
        InputError: clips without exactly two modalities of vectors or without exactly one class, a batch not larger
            than `options.outputs`, more directions than outputs, or `settings` that the method does not support.
    """
    _check_batch(settings, options.outputs, "c-dcca")
    hiddens = dict.fromkeys(context.need_pair("c-dcca"), hidden)
    context.need_classes("c-dcca")
    learner = CorrelationLearner(context, hidden=hiddens, options=options, pair_weight=pair_weight)
    return LearnedMethod(learner, context, settings)


def _encoder(dimension: int, hidden: tuple[int, ...], outputs: int, dropout: float) -> nn.Sequential:
    inner = layers((dimension, *hidden), activation="sigmoid", dropout=dropout)
    return nn.Sequential(nn.BatchNorm1d(dimension), inner, nn.Linear((dimension, *hidden)[-1], outputs))


def _check_batch(settings: Training, outputs: int, method: str) -> None:
    if settings.batch <= outputs:
        raise InputError(
            f"training.batch is {settings.batch}, but {method} needs a batch well above its {outputs} outputs to "
            f"estimate their covariance; set training.batch to {4 * outputs}, for example"
        )
