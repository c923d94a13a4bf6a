"""The method `xie`: negative sampling for contrastive audio-text retrieval (Xie et al., ICASSP 2023)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args

from aadml.comparison.relevance import Form
from aadml.methods.audio_text.captioned import AudioText
from aadml.methods.audio_text.frames_words import CrnnInput, FramesAgainstWords
from aadml.methods.audio_text.text_input import WordInput
from aadml.methods.method import Context, Method
from aadml.methods.settings import Training
from aadml.objective.composition import compose_objective
from feature_extraction.ground.errors import InputError

Section = Mapping[str, Any] | str
RANKING: Mapping[str, Any] = MappingProxyType({"name": "ranking", "reduction": "mean", "combine": "sum"})
STRATEGIES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "random": {"name": "random"},
        "full-mini-batch": {"name": "all"},
        "cross-modality-hard": {"name": "hardest", "score": "dot", "positive": "own"},
        "cross-modality-semi-hard": {"name": "semi-hard-two-sided", "score": "dot"},
        "text-based-hard": {"name": "text-based-hard"},
        "text-based-easy": {"name": "text-based-easy"},
        "audio-based-hard": {"name": "audio-based-hard"},
        "audio-based-easy": {"name": "audio-based-easy"},
    }
)
"""The eight strategies of the paper, each a selection."""


def xie(
    context: Context,
    settings: Training,
    *,
    strategy: str = "cross-modality-semi-hard",
    channels: int = 128,
    dropout: float = 0.3,
    text_weights: str = "untrained",
    text_dimension: int = 300,
    form: str = "mean",
    score_rate: str = "native",
    legacy_padding: bool = False,
    choose: str = "loss",
    memory_mib: int = 1024,
    cleaning: str = "xie",
    captions: int = 5,
    loss: Section = RANKING,
    directions: Sequence[str] = ("audio-text", "text-audio"),
) -> Method:
    """Build XIE's model: a CRNN's frames against frozen word vectors, with one of eight strategies for negatives.

    Args:
        context: seed and device; sound and captions have no dimensions.
        settings: the `training` section.
        strategy: a key of STRATEGIES.
        channels: of the CRNN's wide convolutions; 128 is the published size.
        dropout: before the GRU.
        text_weights: a Word2Vec file, or "untrained" for a random vector a word.
        text_dimension: of a word's vector, and of a frame's.
        form: of the relevance: "mean" (the paper), "max-frame" or "max-word".
        score_rate: "native", or "pooled": frames at a quarter of the rate, before they are interpolated.
        legacy_padding: average over the padding while training, as the released code does.
        choose: what chooses the epoch: the validation "loss" (the paper) or "map".
        memory_mib: spectrograms kept in memory instead of decoding them again.
        cleaning: of captions, a key of CLEANINGS.
        captions: used of each clip, at most.
        loss: `name` (a key of LOSSES) and its options.
        directions: who meets whom.
    """
    for name, value, known in (
        ("strategy", strategy, tuple(STRATEGIES)),
        ("form", form, get_args(Form)),
        ("score_rate", score_rate, ("native", "pooled")),
        ("choose", choose, ("loss", "map")),
    ):
        if value not in known:
            raise InputError(f"method.{name}: no '{value}'; there are {', '.join(known)}")
    objective = compose_objective(
        loss={"name": loss} if isinstance(loss, str) else loss, selection=STRATEGIES[strategy],
        proxy={"name": "identity"}, directions=directions, modalities=("audio", "text"),
        dimension=text_dimension, features=0, classes=0,
    )  # fmt: skip
    options = {
        "form": form, "score_rate": score_rate, "legacy_padding": legacy_padding, "choose": choose,
        "memory_mib": memory_mib, "guides": [side for side in ("text", "audio") if strategy.startswith(f"{side}-")],
    }  # fmt: skip
    audio = CrnnInput(channels=channels, dimension=text_dimension, dropout=dropout)
    text = WordInput(text_weights, dimension=text_dimension, seed=context.seed, pooled=False)
    return AudioText(FramesAgainstWords(audio, text, objective, options, settings.batch), context, settings)
