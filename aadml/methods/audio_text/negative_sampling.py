"""The method `xie`: negative sampling for contrastive audio-text retrieval (Xie et al., ICASSP 2023).

Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Choice
from aadml.feature_extraction.ground.options import removing
from aadml.methods.audio_text.frames_words import CrnnInput, FramesAgainstWords
from aadml.methods.audio_text.options import CaptionedOptions, FrameWordOptions, RelevanceOptions
from aadml.methods.audio_text.text_input import WordInput
from aadml.methods.method import Context, Method
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.settings import Training
from aadml.objective.composition import LossSection, SelectionSection, Space, compose_objective
from aadml.objective.left_out import is_rebuilding
from aadml.objective.objective import Directions

RANKING = LossSection.of("ranking", reduction="mean", combine="sum")
READ, NETWORKS, RELEVANCE = CaptionedOptions(cleaning="xie"), FrameWordOptions(), RelevanceOptions()
STRATEGIES: Mapping[str, SelectionSection] = MappingProxyType(
    {
        "random": SelectionSection.of("random"),
        "full-mini-batch": SelectionSection.of("all"),
        "cross-modality-hard": SelectionSection.of("hardest", score="dot", positive="own"),
        "cross-modality-semi-hard": SelectionSection.of("semi-hard-two-sided", score="dot"),
        "text-based-hard": SelectionSection.of("text-based-hard"),
        "text-based-easy": SelectionSection.of("text-based-easy"),
        "audio-based-hard": SelectionSection.of("audio-based-hard"),
        "audio-based-easy": SelectionSection.of("audio-based-easy"),
    }
)
"""The eight strategies of the paper as selections."""
GUIDES: tuple[Modality, ...] = ("text", "audio")


@removing(form="mean")
def xie(
    context: Context,
    settings: Training,
    *,
    strategy: Annotated[str, Choice(STRATEGIES)] = "cross-modality-semi-hard",
    networks: FrameWordOptions = NETWORKS,
    scoring: RelevanceOptions = RELEVANCE,
    captioned: CaptionedOptions = READ,
    loss: LossSection = RANKING,
    directions: Directions = ("audio-text", "text-audio"),
) -> Method:
    """Build the model of Xie et al., which compares frames of a CRNN with frozen word vectors.

    Args:
        context: seed and device; sound and captions have no dimensions.
        settings: the `training` section.
        strategy: a key of STRATEGIES, the eight selections of the paper.
        networks: see `FrameWordOptions`.
        scoring: see `RelevanceOptions`.
        captioned: see `CaptionedOptions`.
        loss: `name` (a key of LOSSES) and its options.
        directions: modalities of anchors and candidates: audio-text, text-audio, or both.

    Raises:
        InputError: a direction other than audio-text and text-audio, a loss that needs classes or the last
            layer of an encoder, or `settings` that the method does not support.
    """
    dimension = networks.text_dimension
    space = Space(("audio", "text"), dimension)
    objective = compose_objective(space, loss=loss, selection=STRATEGIES[strategy], directions=directions)
    if not is_rebuilding() and any({*direction} != {"audio", "text"} for direction in objective.directions):
        raise InputError(
            f"directions are {', '.join(directions)}, but xie scores only sounds against captions; choose from "
            "audio-text, text-audio"
        )
    learner = FramesAgainstWords(
        CrnnInput(channels=networks.channels, dimension=dimension, dropout=networks.dropout),
        WordInput(networks.text_weights, dimension=dimension, seed=context.seed, pooled=False),
        objective,
        scoring,
        guides=[side for side in GUIDES if strategy.startswith(f"{side}-")],
        loading=captioned.loading,
        batch=settings.batch,
    )
    return LearnedMethod(learner, context, settings)
