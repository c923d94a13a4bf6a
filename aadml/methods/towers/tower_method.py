"""Methods with pretrained networks in front of them: what learns from vectors learns from media."""

from collections.abc import Callable
from dataclasses import replace

import torch

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, nested
from aadml.methods.inputs import Inputs
from aadml.methods.method import Context, Method
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.towers.tower_learner import TowerLearner
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training


class TowerMethod(LearnedMethod):
    """A method of vectors behind pretrained networks; see `TowerLearner`."""

    learner: TowerLearner

    def fit(self, train: Clips, valid: Clips, session: Session | None = None) -> None:
        """Describe the clips by the networks as they are, then train."""
        super().fit(*self.learner.begun(train, valid), session)

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed every modality of `clips`; those that cannot be decoded are left out, and named in a warning."""
        return self.learner.embed_clips(self.learner.decodable(clips))

    def architecture(self) -> JsonObject:
        """Describe the networks, so that a saved model can be built without the files of theirs."""
        return self.learner.architecture()


def towered(
    name: str,
    build: Callable[[Context], Method],
    context: Context,
    settings: Training,
    *,
    towers: PretrainedOptions,
    inputs: Inputs,
) -> Method:
    """Build a method behind pretrained networks.

    Args:
        name: of the method, for messages.
        build: builds the method for features of the widths that the context says.
        context: of the media.
        settings: the `training` section.
        towers: the section of that name.
        inputs: the section of that name.

    Raises:
        InputError: a network that cannot be read, or a method that does not learn through the vectors it is given.
    """
    with torch.random.fork_rng(devices=[]):
        networks = {m: _network(m, towers, context) for m in context.modalities}
    widths = {modality: network.dimension for modality, network in networks.items()}
    method = build(replace(context, dimensions=widths, architecture=None))
    trained = any(not network.still for network in networks.values())
    _check(name, method, trained=trained or context.architecture is not None)
    assert isinstance(method, LearnedMethod)
    learner = TowerLearner(method.learner, networks, towers, inputs)
    return TowerMethod(learner, context, settings)


def _network(modality: str, towers: PretrainedOptions, context: Context) -> HubInput:
    kind = next(one for one in towers.networks if one == modality)
    network = HubInput(
        towers.networks[kind], kind, towers.blocks, nested(context.architecture or {}, modality) or None
    )  # fmt: skip
    network.train_blocks(frozen=kind not in towers.train)
    return network


def _check(name: str, method: Method, *, trained: bool) -> None:
    if not isinstance(method, LearnedMethod):
        raise InputError(
            f"towers: {name} learns by no steps through features; extract them (`aadml extract`), or take a method that"
            " does: aadml, pairs, clip, dscmr ..."
        )
    players = method.learner.players()
    if len(players) > 1:
        raise InputError(
            f"towers: {name} trains {' and '.join(players)} against each other; take a method or loss of one player"
        )
    if trained and method.learner.learns_beside_batches:
        raise InputError(
            f"towers: {name} learns from clips beside its batch too; freeze the networks (towers.train=[])"
        )
