"""A method whose parameters are trained by the training loop."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import update_wrapper
from typing import Concatenate, ParamSpec

from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.methods.method import Context, Method, MetricLoss
from aadml.methods.training.learner import Learner
from aadml.methods.training.loop import train as run_training
from aadml.methods.training.precision import resolved
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Precision, Training
from aadml.objective.left_out import LeftOut

P = ParamSpec("P")


class LearnedMethod(Method):
    """A learner as a method.

    Args:
        learner: to be trained.
        context: seed and device.
        settings: the `training` section.
    """

    fits_validation = False

    def __init__(self, learner: Learner, context: Context, settings: Training) -> None:
        self.learner = learner.to(context.device)
        self.settings = replace(settings, precision=resolved(settings.precision, self.learner))
        self._seed = context.seed

    @property
    def similarity(self) -> str:
        """Similarity of the learner's embeddings."""
        return self.learner.similarity

    @property
    def takes_missing(self) -> bool:
        """Whether the learner is trained on clips that lack a modality."""
        return self.learner.takes_missing

    @property
    def needs_same_texts(self) -> str:
        """Reason why the texts of the training clips may not change from epoch to epoch; "" where they may."""
        return self.learner.needs_same_texts

    @property
    def divides_batches(self) -> bool:
        """Whether several processes may train the learner."""
        return self.learner.divides_batches

    @property
    def precision(self) -> Precision:
        """Precision of the training."""
        return self.settings.precision

    def check_clips(self, train: Clips) -> None:
        """Check that the learner can be trained on the clips."""
        self.learner.check_clips(train)

    def fit(self, train: Clips, valid: Clips, session: Session | None = None) -> None:
        """Train the learner; see `aadml.methods.training.loop.train`."""
        run_training(self.learner, train, valid, self.settings, session or Session(), seed=self._seed)

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality (n, d) -> (n, dimension), each alone."""
        return self.learner.embed_all(features, modality)

    def encode(self, clips: Clips, modality: Modality) -> Tensor:
        """Encode one modality of `clips`, each item alone, into the outputs from which embeddings are read."""
        return self.learner.encode(clips, modality)

    def read_off(self, outputs: Tensor) -> Tensor:
        """Compute embeddings from outputs."""
        return self.learner.read_off(outputs)

    def proxy(self) -> nn.Module | None:
        """Return the trained proxy."""
        proxy = self.learner.proxy()
        return proxy.built() if isinstance(proxy, LeftOut) else proxy

    def metric_loss(self) -> MetricLoss | None:
        """Return the metric loss of the training."""
        return self.learner.metric_loss(self.settings)

    def state(self) -> dict[str, Tensor]:
        """Return parameters and buffers."""
        return {key: value.detach().cpu() for key, value in self.learner.state_dict().items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load parameters and buffers."""
        self.learner.load_state_dict(dict(state))
        self.learner.eval()

    def readout(self) -> JsonObject:
        """Describe the read-out of the learner."""
        return self.learner.readout()

    def parameters_count(self) -> int:
        """Count the trainable parameters."""
        return sum(parameter.numel() for parameter in self.learner.parameters())


def learned(learner: Callable[Concatenate[Context, P], Learner]) -> Callable[Concatenate[Context, Training, P], Method]:
    """Build the builder of a method from the class of its learner, with the options of the learner.

    Args:
        learner: (context, *, options) -> learner.

    Returns:
        (context, settings, *, options) -> method.
    """

    def build(context: Context, settings: Training, /, *rest: P.args, **options: P.kwargs) -> Method:
        return LearnedMethod(learner(context, *rest, **options), context, settings)

    update_wrapper(build, learner, updated=())
    return build
