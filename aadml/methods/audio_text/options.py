"""Options that the methods of sound and captions share."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Interval, MinLen

from aadml.comparison.frame_word import Form
from aadml.comparison.options import Count, CountOrZero, Dropout, Width
from aadml.data.captions.cleaning import CLEANINGS
from aadml.data.sources.loading import Loading, LogMelBy
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS
from aadml.feature_extraction.ground.option_types import Choice
from aadml.methods.towers.options import Blocks, HubModel, Mebibytes, Workers

Name = Annotated[str, MinLen(1)]
"""The name of published weights: a path, or "untrained"."""
UNTRAINED = "untrained"
Part = Annotated[float, Interval(gt=0, le=1e6)]


@dataclass(frozen=True, kw_only=True)
class CaptionedOptions:
    """How sound and captions are read.

    Attributes:
        memory_mib: memory for spectrograms, which are not decoded again.
        disk_mib: disk space in `$AADML_CACHE/decoded` for spectrograms of sound files, or for media that trained
            networks of `transformers` decode, in all.
        workers: processes that decode sound outside memory for the next steps; 0 decodes between two steps.
        log_mel: where spectrograms are computed: once each on the "processor", or batch by batch on the "device", from
            sounds that are cached in memory instead (five times as large), not on disk; equal up to rounding.
        cleaning: of captions, a key of CLEANINGS.
        captions: largest number of captions of a clip that are used.
    """

    memory_mib: Mebibytes = 1024
    disk_mib: Mebibytes = 4096
    workers: Workers = 0
    log_mel: LogMelBy = "processor"
    cleaning: Annotated[str, Choice(CLEANINGS)] = "mei"
    captions: Count = 5

    @property
    def loading(self) -> Loading:
        """How sound is decoded and cached."""
        return Loading.of(
            memory_mib=self.memory_mib, disk_mib=self.disk_mib, workers=self.workers, log_mel=self.log_mel
        )


@dataclass(frozen=True, kw_only=True)
class RelevanceOptions:
    """How frames are scored against words.

    Attributes:
        form: of the relevance: "mean" (the paper), "max-frame" or "max-word".
        score_rate: "native", or "pooled": frames at a quarter of the rate, before they are interpolated.
        legacy_padding: average over the padding while training, as the released code does.
        choose: score that chooses the epoch: the validation "loss" (the paper) or "map".
    """

    form: Form = "mean"
    score_rate: Literal["native", "pooled"] = "native"
    legacy_padding: bool = False
    choose: Literal["loss", "map"] = "loss"


@dataclass(frozen=True, kw_only=True)
class TowerOptions:
    """Two towers into a common space.

    Attributes:
        audio: "resnet38", "cnn14", "cnn10", or hf:MODEL for a pretrained network of `transformers` with its weights and
            windows (docs/encoders.md), for which the options of the other networks have no effect.
        audio_weights: "untrained", or a published PANNs file.
        audio_width: channels of the first block; 64 is the published size.
        augment: whether SpecAugment acts while training.
        text: "bert", "word2vec" (the mean of frozen word vectors), or hf:MODEL as `audio`.
        text_weights: "untrained", a local BERT folder, or a Word2Vec file.
        text_layers: of an untrained BERT.
        text_dimension: of an untrained BERT (a multiple of 64, or less than 128), or of word vectors (300).
        vocabulary: word pieces of an untrained BERT, learned from the training captions.
        dropout: of the audio network and of BERT.
        blocks: trained blocks of hf:MODEL, from the end, with the layers after them; 0 trains the layers after the
            blocks alone (its own projection), "all" the whole network. It has no effect on frozen networks.
        heads: "layers" for two new layers on each network (Mei et al.), or "none" to compare the networks' outputs.
        hidden: width of the heads' hidden layer; 0 for that of the paper.
        dimension: of the common space; without heads, that of both networks.
        recall: directions of the recall sum that chooses the epoch: "text-audio" (the released code) or "both".
        start: a run folder of the same networks, for the initial weights; "" for none.
    """

    audio: Annotated[str, Choice(PANNS_NETWORKS)] | HubModel = "resnet38"
    audio_weights: Name = UNTRAINED
    audio_width: Annotated[int, Interval(ge=1, le=4096)] = 64
    augment: bool = True
    text: Literal["bert", "word2vec"] | HubModel = "bert"
    text_weights: Name = UNTRAINED
    text_layers: Annotated[int, Interval(ge=1, le=96)] = 2
    text_dimension: Width = 128
    vocabulary: Annotated[int, Interval(ge=100, le=1_000_000)] = 2000
    dropout: Dropout = 0.2
    blocks: Blocks = "all"
    heads: Literal["layers", "none"] = "layers"
    hidden: Annotated[int, Interval(ge=0, le=65_536)] = 0
    dimension: Width = 1024
    recall: Literal["text-audio", "both"] = "text-audio"
    start: str = ""


@dataclass(frozen=True, kw_only=True)
class Freezing:
    """Networks that are not trained; heads always are.

    Attributes:
        freeze: "none", "audio", "text" or "both".
        frozen_mode: "eval", or "train" as in the released code (see `Tower`).
    """

    freeze: Literal["none", "audio", "text", "both"] = "none"
    frozen_mode: Literal["eval", "train"] = "eval"


@dataclass(frozen=True, kw_only=True)
class CurriculumOptions:
    """Division of the training into an easy, a median and a hard stage, and construction of their batches.

    Attributes:
        shares: epochs of the stages easy, median and hard, as parts of training.epochs; each has at least one.
        ancillary_epochs: of the model whose vectors of the pairs build the batches, the method `audio-text` with the
            same options; 0 uses the initial network.
        ancillary_batch: pairs a batch of that model; 0 for training.batch.
        mining: whether batches are built; otherwise all stages have shuffled ones (the paper's "without mining").
        pair: vector of a pair: "sum" of both unit vectors, "audio", "text" or "concatenation".
        easy_builder: of easy batches; "auto" is "stratified".
        hard_builder: of hard batches; "auto" is "seeded-nearest".
        dedupe: keep equal captions and clips apart in hard batches.
        rebuild_every: epochs after which a stage rebuilds its batches; 0 never.
        freeze_scope: frozen part of the other side: "encoder" (all) or "backbone" (all but its head).
        until: last stage of the training.
        score_stages: score the best weights of the easy and the median stage too, beside those of the last.
    """

    shares: tuple[Part, Part, Part] = (10.0, 10.0, 30.0)
    ancillary_epochs: CountOrZero = 50
    ancillary_batch: CountOrZero = 0
    mining: bool = True
    pair: Literal["sum", "audio", "text", "concatenation"] = "sum"
    easy_builder: Literal["auto", "stratified", "greedy", "seeded-nearest"] = "auto"
    hard_builder: Literal["auto", "seeded-nearest", "greedy"] = "auto"
    dedupe: bool = True
    rebuild_every: CountOrZero = 0
    freeze_scope: Literal["encoder", "backbone"] = "encoder"
    until: Literal["easy", "median", "hard"] = "hard"
    score_stages: bool = False
