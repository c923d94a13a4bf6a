"""The methods made of two towers: `audio-text` (Mei et al. 2022) and `3cmlf` (the three-stage curriculum)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from aadml.methods.audio_text.captioned import AudioText
from aadml.methods.audio_text.curriculum import Curriculum
from aadml.methods.audio_text.learner import TwoTowers
from aadml.methods.audio_text.text_input import UNTRAINED
from aadml.methods.audio_text.towers import audio_tower, text_tower
from aadml.methods.method import Context, Method
from aadml.methods.settings import Training
from aadml.objective.composition import compose_objective
from feature_extraction.ground.errors import InputError

Section = Mapping[str, Any] | str
BOTH_WAYS = ("audio-text", "text-audio")
NT_XENT: Mapping[str, Any] = MappingProxyType({"name": "nt-xent", "reduction": "mean"})


def audio_text(
    context: Context,
    settings: Training,
    *,
    audio: str = "resnet38",
    audio_weights: str = "untrained",
    audio_width: int = 64,
    augment: bool = True,
    text: str = "bert",
    text_weights: str = "untrained",
    text_layers: int = 2,
    text_dimension: int = 128,
    vocabulary: int = 2000,
    dropout: float = 0.2,
    hidden: int = 0,
    dimension: int = 1024,
    freeze: str = "none",
    frozen_mode: str = "eval",
    recall: str = "text-audio",
    memory_mib: int = 1024,
    cleaning: str = "mei",
    captions: int = 5,
    start: str = "",
    loss: Section = NT_XENT,
    selection: Section = "all",
    directions: Sequence[str] = BOTH_WAYS,
) -> Method:
    """Build the model of Mei et al. (On Metric Learning for Audio-Text Cross-Modal Retrieval, 2022).

    Args:
        context: seed and device; sound and captions have no dimensions.
        settings: the `training` section.
        audio: "resnet38", "cnn14" or "cnn10".
        audio_weights: "untrained", or a published PANNs file.
        audio_width: channels of the first block; 64 is the published size.
        augment: whether SpecAugment acts while training.
        text: "bert" or "word2vec" (the mean of frozen word vectors).
        text_weights: "untrained", a local BERT folder, or a Word2Vec file.
        text_layers: of an untrained BERT.
        text_dimension: of an untrained BERT (a multiple of 64, or less than 128), or of word vectors (300).
        vocabulary: word pieces of an untrained BERT, learned from the training captions.
        dropout: of the audio network and of BERT.
        hidden: width of the heads' hidden layer; 0 takes the paper's.
        dimension: of the common space.
        freeze: "none", "audio", "text" or "both": whose network is not trained (the heads always are).
        frozen_mode: "eval", or "train" as in the released code (see `Tower`).
        recall: what the recall sum that chooses the epoch adds up: "text-audio" (the released code) or "both".
        memory_mib: spectrograms kept in memory instead of decoding them again.
        cleaning: of captions, a key of CLEANINGS.
        captions: used of each clip, at most.
        start: a run folder of the same networks whose weights training begins with; "" for none.
        loss: `name` (a key of LOSSES) and its options.
        selection: `name` (a key of SELECTIONS) and its options.
        directions: who meets whom.
    """
    options = dict(locals())
    return AudioText(_learner(options, None), context, settings, start)


def three_stages(
    context: Context,
    settings: Training,
    *,
    audio: str = "resnet38",
    audio_weights: str = "untrained",
    audio_width: int = 64,
    augment: bool = True,
    text: str = "bert",
    text_weights: str = "untrained",
    text_layers: int = 2,
    text_dimension: int = 128,
    vocabulary: int = 2000,
    dropout: float = 0.2,
    hidden: int = 0,
    dimension: int = 1024,
    recall: str = "text-audio",
    memory_mib: int = 1024,
    cleaning: str = "mei",
    captions: int = 5,
    start: str = "",
    shares: tuple[float, ...] = (10.0, 10.0, 30.0),
    ancillary_epochs: int = 50,
    mining: bool = True,
    pair: str = "sum",
    easy_builder: str = "auto",
    hard_builder: str = "auto",
    dedupe: bool = True,
    rebuild_every: int = 0,
    freeze_scope: str = "encoder",
    until: str = "hard",
    loss: Section = NT_XENT,
    selection: Section = "all",
    directions: Sequence[str] = BOTH_WAYS,
) -> Method:
    """Build 3CMLF: the model of `audio_text`, trained in three stages on easy, random and hard batches.

    The paper leaves much open (see `Curriculum`); what is not said there has an option here.

    Args:
        context: see `audio_text`.
        settings: the `training` section; its batch is that of the curriculum, its epochs are divided by `shares`.
        audio: see `audio_text`, as all options down to `captions`.
        audio_weights: see `audio_text`.
        audio_width: see `audio_text`.
        augment: see `audio_text`.
        text: see `audio_text`.
        text_weights: see `audio_text`.
        text_layers: see `audio_text`.
        text_dimension: see `audio_text`.
        vocabulary: see `audio_text`.
        dropout: see `audio_text`.
        hidden: see `audio_text`.
        dimension: see `audio_text`.
        recall: see `audio_text`.
        memory_mib: see `audio_text`.
        cleaning: see `audio_text`.
        captions: see `audio_text`.
        start: see `audio_text`.
        shares: epochs of the stages easy, median and hard, as parts of training.epochs.
        ancillary_epochs: of the model whose vectors of the pairs make the batches; 0 takes the network as it begins.
        mining: False takes shuffled batches in all stages.
        pair: what describes a pair: "sum", "audio", "text" or "concatenation".
        easy_builder: "auto", "stratified", "greedy" or "seeded-nearest".
        hard_builder: "auto", "seeded-nearest" or "greedy".
        dedupe: keep equal captions and clips apart in hard batches.
        rebuild_every: epochs after which a stage builds its batches anew; 0 never.
        freeze_scope: what of the other side is left alone: "encoder" (all) or "backbone" (all but its head).
        until: last stage that is run: "easy", "median" or "hard".
        loss: `name` (a key of LOSSES) and its options.
        selection: `name` (a key of SELECTIONS) and its options.
        directions: who meets whom.
    """
    options = dict(locals()) | {"freeze": "none", "frozen_mode": "eval"}
    curriculum = Curriculum(options, batch=settings.batch, seed=context.seed)
    return AudioText(_learner(options, curriculum), context, settings, start)


def _learner(options: Mapping[str, Any], curriculum: Curriculum | None) -> TwoTowers:
    for key, known in (
        ("freeze", ("none", "audio", "text", "both")),
        ("frozen_mode", ("eval", "train")),
        ("recall", ("text-audio", "both")),
    ):
        if options[key] not in known:
            raise InputError(f"method.{key}: no '{options[key]}'; there are {', '.join(known)}")
    named = {
        key: {"name": options[key]} if isinstance(options[key], str) else options[key] for key in ("loss", "selection")
    }
    objective = compose_objective(
        loss=named["loss"], selection=named["selection"], proxy={"name": "identity"},
        directions=options["directions"], modalities=("audio", "text"), dimension=options["dimension"],
        features=0, classes=0,
    )  # fmt: skip
    context = options["context"]
    if context.architecture is not None:
        options = {**options, "audio_weights": UNTRAINED}  # a saved model brings all of its weights
    audio, text = audio_tower(options), text_tower(options, context)
    return TwoTowers(audio, text, objective, options["recall"], options["memory_mib"] << 20, curriculum)
