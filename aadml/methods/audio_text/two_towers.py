"""Two-tower methods: `audio-text` (Mei et al. 2022) and `3cmlf` (the three-stage curriculum).

Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import removing
from aadml.methods.audio_text.curriculum import Curriculum, ancillary
from aadml.methods.audio_text.learner import TwoTowers
from aadml.methods.audio_text.options import UNTRAINED, CaptionedOptions, CurriculumOptions, Freezing, TowerOptions
from aadml.methods.audio_text.towers import build_tower
from aadml.methods.method import Context, Method, Prior
from aadml.methods.training.learned_method import LearnedMethod, learned
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training
from aadml.objective.composition import ALL_PAIRS, LossSection, SelectionSection, Space, compose_objective
from aadml.objective.objective import Directions

BOTH_WAYS = ("audio-text", "text-audio")
NT_XENT = LossSection.of("nt-xent", reduction="mean")
TOWERS, READ, NOT_FROZEN, THREE_STAGES = TowerOptions(), CaptionedOptions(), Freezing(), CurriculumOptions()

_BuildPrior = Callable[[Training], Method]


class ThreeStages(LearnedMethod):
    """Two towers, trained in stages; an ancillary model is trained first if its vectors determine the batches.

    Args:
        learner: two towers.
        context: seed and device.
        settings: the `training` section.
        build_prior: function that builds the untrained ancillary model from its `training` section.

    Raises:
        InputError: the learner cannot be trained with `training.precision` or `training.compile`.
    """

    def __init__(self, learner: TwoTowers, context: Context, settings: Training, build_prior: _BuildPrior) -> None:
        super().__init__(learner, context, settings)
        assert learner.curriculum is not None
        self._curriculum, self._build_prior = learner.curriculum, build_prior
        self._prior = ancillary(learner.curriculum.options, settings)

    def prior(self) -> Prior | None:
        """Return the description of the ancillary model; None if the curriculum needs no such model."""
        return self._prior

    def take_prior(self, trained: Method) -> None:
        """Use the trained ancillary model in the next `fit`."""
        assert isinstance(trained, LearnedMethod)
        assert isinstance(trained.learner, TwoTowers)
        self._curriculum.described = trained.learner.describe_pairs

    def fit(self, train: Clips, valid: Clips, session: Session | None = None) -> None:
        """Train in stages.

        An ancillary model that the curriculum needs is trained first, unless `take_prior` has received the trained
        model.

        Raises:
            InputError: see `LearnedMethod.fit`.
        """
        if self._prior and self._curriculum.described is None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self._seed)
                trained = self._build_prior(self._prior.training)
            trained.fit(train, valid)
            self.take_prior(trained)
        super().fit(train, valid, session)
        self._curriculum.described = None  # one ancillary model serves one training run


@learned
def audio_text(
    context: Context,
    *,
    towers: TowerOptions = TOWERS,
    freezing: Freezing = NOT_FROZEN,
    captioned: CaptionedOptions = READ,
    loss: LossSection = NT_XENT,
    selection: SelectionSection = ALL_PAIRS,
    directions: Directions = BOTH_WAYS,
) -> TwoTowers:
    """Build the model of Mei et al. (Interspeech 2022).

    Args:
        context: seed and device; sound and captions have no dimensions.
        towers: see `TowerOptions`.
        freezing: see `Freezing`.
        captioned: see `CaptionedOptions`.
        loss: `name` (a key of LOSSES) and its options.
        selection: `name` (a key of SELECTIONS) and its options.
        directions: modalities of anchors and candidates.

    Raises:
        InputError: an unreadable network, or options that contradict each other or leave nothing to train.
    """
    return _learner(context, towers, freezing, captioned, (loss, selection, directions), None)


@removing(pair="sum", easy_builder="auto", hard_builder="auto", rebuild_every=0, freeze_scope="encoder")
def three_stages(
    context: Context,
    settings: Training,
    *,
    towers: TowerOptions = TOWERS,
    captioned: CaptionedOptions = READ,
    curriculum: CurriculumOptions = THREE_STAGES,
    loss: LossSection = NT_XENT,
    selection: SelectionSection = ALL_PAIRS,
    directions: Directions = BOTH_WAYS,
) -> Method:
    """Build 3CMLF (Chao et al.): the model of `audio_text`, trained in stages on easy, random and hard batches.

    Choices that the paper leaves open are options (see `CurriculumOptions`).

    Args:
        context: see `audio_text`.
        settings: the `training` section; the option `shares` divides the epochs among the stages.
        towers: see `TowerOptions`.
        captioned: see `CaptionedOptions`.
        curriculum: see `CurriculumOptions`.
        loss: `name` (a key of LOSSES) and its options.
        selection: `name` (a key of SELECTIONS) and its options.
        directions: modalities of anchors and candidates.

    Raises:
        InputError: an unreadable network, options that contradict each other or leave nothing to train, or `settings`
            that the method does not support.
    """
    stages = Curriculum(curriculum, batch=settings.batch, seed=context.seed)
    learner = _learner(context, towers, NOT_FROZEN, captioned, (loss, selection, directions), stages)

    build_prior = partial(
        audio_text, context, towers=towers, captioned=captioned, loss=loss, selection=selection, directions=directions
    )
    return ThreeStages(learner, context, settings, build_prior)


def _learner(
    context: Context,
    towers: TowerOptions,
    freezing: Freezing,
    captioned: CaptionedOptions,
    sections: tuple[LossSection, SelectionSection, Directions],
    curriculum: Curriculum | None,
) -> TwoTowers:
    loss, selection, directions = sections
    space = Space(("audio", "text"), towers.dimension)
    objective = compose_objective(space, loss=loss, selection=selection, directions=directions)
    if context.architecture is not None:
        towers = replace(towers, audio_weights=UNTRAINED)  # a saved model has all of its weights
    audio, text = build_tower("audio", towers, freezing, context), build_tower("text", towers, freezing, context)
    if context.architecture is None and not any(p.requires_grad for tower in (audio, text) for p in tower.parameters()):
        raise InputError(
            "method.heads is none with both networks frozen, so nothing can be trained; set method.heads to layers, or "
            "train a network (method.freeze, method.blocks)"
        )
    return TwoTowers(audio, text, objective, towers.recall, captioned.loading, curriculum, towers.start)
