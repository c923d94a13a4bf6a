"""Methods whose inputs are vectors that pretrained networks compute from media."""

from collections.abc import Callable
from dataclasses import replace

import torch

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.inputs import Inputs
from aadml.methods.method import Context, Method
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.towers.tower_learner import TowerLearner
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training


class TowerMethod(LearnedMethod):
    """A method that is trained on vectors of pretrained networks; see `TowerLearner`."""

    learner: TowerLearner

    def fit(self, train: Clips, valid: Clips, session: Session | None = None) -> None:
        """Prepare the clips, then train.

        Raises:
            InputError: no training clip can be decoded, or training fails (see `aadml.methods.training.loop.train`).
        """
        super().fit(*self.learner.begun(train, valid), session)

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed every modality of `clips`; undecodable clips are omitted, with a warning."""
        return self.learner.embed_clips(self.learner.decodable(clips))


def towered(
    name: str,
    build: Callable[[Context], Method],
    context: Context,
    settings: Training,
    *,
    towers: PretrainedOptions,
    inputs: Inputs,
) -> Method:
    """Build a method that is trained on the vectors of pretrained networks.

    Args:
        name: name of the method, for messages.
        build: function that builds the method for features with the dimensions of a context.
        context: context of the media.
        settings: the `training` section.
        towers: the `towers` section.
        inputs: the `inputs` section.

    Raises:
        InputError: a network cannot be read, or the method cannot be built or trained on the networks' vectors.
        MissingExtraError: a package that a network or its adapters need is not installed.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(context.seed)
        networks = {m: _network(m, towers, context) for m in context.modalities}
    widths = {modality: network.dimension for modality, network in networks.items()}
    method = build(replace(context, dimensions=widths, architecture=None))
    if type(method) is not LearnedMethod:
        raise InputError(
            f"towers: {name} is not trained by gradient steps on features; extract features (`aadml extract`), or "
            "choose another method, such as aadml, pairs, clip or dscmr"
        )
    players = method.learner.players()
    if len(players) > 1:
        raise InputError(
            f"towers: {name} trains {' and '.join(players)} with separate optimizers, which towers do not support; "
            "choose another method or loss"
        )
    if method.learner.learns_beside_batches and not all(network.frozen for network in networks.values()):
        raise InputError(
            f"towers: {name} also learns from clips outside its batch, so the networks cannot be trained; freeze the "
            "networks (--set towers.train=[])"
        )
    return TowerMethod(TowerLearner(method.learner, networks, towers, inputs), context, settings)


def _network(modality: Modality, towers: PretrainedOptions, context: Context) -> HubInput:
    kind, source = next((kind, source) for kind, source in towers.networks.items() if kind == modality)
    saved = context.architecture.tower(modality) if context.architecture else None
    network = HubInput(source, kind, towers, saved)
    network.train_blocks(frozen=kind not in towers.train)
    return network
