"""A method whose parameters are trained by the training loop."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import update_wrapper
from typing import Concatenate, ParamSpec

from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.architecture import Architecture
from aadml.methods.method import Context, Method
from aadml.methods.training.compilation import compiled_objectives
from aadml.methods.training.learner import Learner
from aadml.methods.training.loop import train as run_training
from aadml.methods.training.precision import check_device, resolved
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training
from aadml.objective.left_out import LeftOut
from aadml.proxies.contract import Proxy

P = ParamSpec("P")


class LearnedMethod(Method):
    """Method that trains a learner.

    Args:
        learner: learner to train.
        context: seed and device.
        settings: the `training` section.

    Raises:
        InputError: the learner cannot be trained with `training.precision` or `training.compile`.
    """

    fits_validation = False

    def __init__(self, learner: Learner, context: Context, settings: Training) -> None:
        self.learner = learner.to(context.device)
        self.takes_missing, self.needs_same_texts = learner.takes_missing, learner.needs_same_texts
        self.divides_batches, self.precision = learner.divides_batches, resolved(settings.precision, self.learner)
        self.settings = replace(settings, precision=self.precision)
        compiled_objectives(self.learner, settings)
        self._seed = context.seed

    @property
    def similarity(self) -> str:
        """Similarity of the learner's embeddings, by name."""
        return self.learner.similarity

    def check_clips(self, train: Clips) -> None:
        """Check that the clips and the device can be used for training.

        Raises:
            InputError: the learner rejects the clips, the device lacks the training precision, or batches have only
                one clip but are normalized.
        """
        check_device(self.precision, self.learner.device)
        self.learner.check_clips(train)
        if self.learner.normalizes_batches:
            _check_batches(train, self.settings.batch)

    def fit(self, train: Clips, valid: Clips, session: Session | None = None) -> None:
        """Train the learner.

        Raises:
            InputError: the clips cannot be prepared (see `Learner.begun`), or training fails (see
                `aadml.methods.training.loop.train`).
        """
        clips = self.learner.begun(train, valid)
        run_training(self.learner, *clips, self.settings, session or Session(), seed=self._seed)

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality, each independently.

        Args:
            features: (n, d), or a source of n items.
            modality: modality of the items.

        Returns:
            Embeddings (n, dimension), float32 on the CPU.
        """
        return self.learner.embed_all(features, modality)

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed every modality of `clips`; clips that cannot be decoded are omitted, with a warning.

        Raises:
            InputError: nothing can be decoded, or the method is not fitted.
        """
        return self.learner.embed_clips(self.learner.decodable(clips))

    def encode(self, clips: Clips, modality: Modality) -> Tensor:
        """Encode one modality of `clips`, each item independently, into the outputs (n, o) that `read_off` converts."""
        return self.learner.encode(clips, modality)

    def read_off(self, outputs: Tensor) -> Tensor:
        """Compute embeddings (n, dimension) from the outputs (n, o) of `encode`."""
        return self.learner.read_off(outputs)

    def proxy(self) -> Proxy | None:
        """Return the trained proxy; None if the learner has no proxy."""
        proxy = self.learner.proxy()
        return proxy.built() if isinstance(proxy, LeftOut) else proxy

    def state(self) -> dict[str, Tensor]:
        """Return the parameters and buffers."""
        return {key: value.detach().cpu() for key, value in self.learner.state_dict().items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the parameters and buffers."""
        self.learner.load_state_dict(dict(state))
        self.learner.eval()

    def architecture(self) -> Architecture:
        """Return the description of the learner's pretrained networks."""
        return self.learner.architecture()

    def readout(self) -> Mapping[str, str | float]:
        """Return the name and temperature of the learner's read-out; empty if no read-out is chosen."""
        return self.learner.readout()

    def parameters_count(self) -> int:
        """Return the number of entries of all parameters, including frozen parameters."""
        return sum(parameter.numel() for parameter in self.learner.parameters())


def _check_batches(train: Clips, batch: int) -> None:
    rows = train.whole.tolist()
    if (len(rows) if train.drawn_by is None else len({train.drawn_by[row] for row in rows})) == 1:
        raise InputError(
            "there is 1 training clip with all modalities, but this method normalizes batches of at least 2; add clips "
            "to the split 'train', or choose another method"
        )
    if batch < 2:
        raise InputError(
            f"training.batch is {batch}, but this method normalizes batches of at least 2 clips; set training.batch to "
            "2 or more"
        )


def learned(learner: Callable[Concatenate[Context, P], Learner]) -> Callable[Concatenate[Context, Training, P], Method]:
    """Return a function that builds a `LearnedMethod` and has the options of `learner`.

    Args:
        learner: (context, *, options) -> learner.

    Returns:
        (context, settings, *, options) -> method.
    """

    def build(context: Context, settings: Training, /, *rest: P.args, **options: P.kwargs) -> Method:
        return LearnedMethod(learner(context, *rest, **options), context, settings)

    update_wrapper(build, learner, updated=())
    return build
