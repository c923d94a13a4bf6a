"""The methods made of two towers: `audio-text` (Mei et al. 2022) and `3cmlf` (the three-stage curriculum)."""

from dataclasses import replace

import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.audio_text.captioned import Ancillary, AudioText
from aadml.methods.audio_text.curriculum import Curriculum, ancillary
from aadml.methods.audio_text.learner import TwoTowers
from aadml.methods.audio_text.options import UNTRAINED, CaptionedOptions, CurriculumOptions, Freezing, TowerOptions
from aadml.methods.audio_text.towers import audio_tower, text_tower
from aadml.methods.method import Context, Method
from aadml.methods.training.settings import Training
from aadml.objective import Objective
from aadml.objective.composition import Space, compose_objective
from aadml.objective.objective import Directions
from aadml.objective.sections import Section

BOTH_WAYS = ("audio-text", "text-audio")
NT_XENT: Section = {"name": "nt-xent", "reduction": "mean"}
TOWERS, READ, NOT_FROZEN, THREE_STAGES = TowerOptions(), CaptionedOptions(), Freezing(), CurriculumOptions()


def audio_text(
    context: Context,
    settings: Training,
    *,
    towers: TowerOptions = TOWERS,
    freezing: Freezing = NOT_FROZEN,
    captioned: CaptionedOptions = READ,
    loss: Section = NT_XENT,
    selection: Section = "all",
    directions: Directions = BOTH_WAYS,
) -> Method:
    """Build the model of Mei et al. (On Metric Learning for Audio-Text Cross-Modal Retrieval, 2022).

    Args:
        context: seed and device; sound and captions have no dimensions.
        settings: the `training` section.
        towers: see `TowerOptions`.
        freezing: see `Freezing`.
        captioned: see `CaptionedOptions`.
        loss: `name` (a key of LOSSES) and its options.
        selection: `name` (a key of SELECTIONS) and its options.
        directions: who meets whom.
    """
    objective = _objective(towers, loss, selection, directions)
    learner = _learner(context, towers, freezing, captioned, objective, None)
    return AudioText(learner, context, settings, towers.start)


def three_stages(
    context: Context,
    settings: Training,
    *,
    towers: TowerOptions = TOWERS,
    captioned: CaptionedOptions = READ,
    curriculum: CurriculumOptions = THREE_STAGES,
    loss: Section = NT_XENT,
    selection: Section = "all",
    directions: Directions = BOTH_WAYS,
) -> Method:
    """Build 3CMLF: the model of `audio_text`, trained in three stages on easy, random and hard batches.

    The paper leaves much open (see `Curriculum`); what is not said there has an option here.

    Args:
        context: see `audio_text`.
        settings: the `training` section; its batch is that of the curriculum, its epochs are divided by `shares`.
        towers: see `TowerOptions`.
        captioned: see `CaptionedOptions`.
        curriculum: see `CurriculumOptions`.
        loss: `name` (a key of LOSSES) and its options.
        selection: `name` (a key of SELECTIONS) and its options.
        directions: who meets whom.
    """
    stages = Curriculum(curriculum, batch=settings.batch, seed=context.seed)
    objective = _objective(towers, loss, selection, directions)
    learner = _learner(context, towers, NOT_FROZEN, captioned, objective, stages)

    def plain() -> Method:
        assert prior is not None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(context.seed)
            return audio_text(
                context, prior.training, towers=towers, captioned=captioned, loss=loss,
                selection=selection, directions=directions,
            )  # fmt: skip

    def take(trained: Method) -> None:
        assert isinstance(trained, AudioText)
        assert isinstance(trained.learner, TwoTowers)
        stages.described = trained.learner.describe_pairs

    prior = ancillary(curriculum, settings)
    return AudioText(learner, context, settings, towers.start, Ancillary(prior, plain, take) if prior else None)


def _objective(towers: TowerOptions, loss: Section, selection: Section, directions: Directions) -> Objective:
    space = Space(("audio", "text"), towers.dimension)
    return compose_objective(space, loss=loss, selection=selection, directions=directions)


def _learner(
    context: Context,
    towers: TowerOptions,
    freezing: Freezing,
    captioned: CaptionedOptions,
    objective: Objective,
    curriculum: Curriculum | None,
) -> TwoTowers:
    if context.architecture is not None:
        towers = replace(towers, audio_weights=UNTRAINED)  # a saved model brings all of its weights
    audio, text = audio_tower(towers, freezing, context), text_tower(towers, freezing, context)
    if context.architecture is None and not any(p.requires_grad for tower in (audio, text) for p in tower.parameters()):
        raise InputError("method.freeze: both networks are frozen and have no heads, so nothing is left to train")
    return TwoTowers(audio, text, objective, towers.recall, captioned.loading, curriculum)
