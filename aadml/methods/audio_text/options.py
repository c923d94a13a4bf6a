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
        memory_mib: spectrograms kept in memory instead of decoding them again.
        disk_mib: spectrograms of sound files, or what trained networks of `transformers` decode, that are kept in
            `$AADML_CACHE/decoded`, in all.
        workers: processes that decode for the steps to come what is not in memory; 0 decodes between two steps.
        log_mel: who makes spectrograms: the "processor" once each, or the "device" batch by batch, from sounds that are
            kept in memory instead (five times as large) and not on disk; equal up to rounding.
        cleaning: of captions, a key of CLEANINGS.
        captions: used of each clip, at most.
    """

    memory_mib: Mebibytes = 1024
    disk_mib: Mebibytes = 4096
    workers: Workers = 0
    log_mel: LogMelBy = "processor"
    cleaning: Annotated[str, Choice(CLEANINGS)] = "mei"
    captions: Count = 5

    @property
    def loading(self) -> Loading:
        """Say how sound is decoded and kept."""
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
        choose: what chooses the epoch: the validation "loss" (the paper) or "map".
    """

    form: Form = "mean"
    score_rate: Literal["native", "pooled"] = "native"
    legacy_padding: bool = False
    choose: Literal["loss", "map"] = "loss"


@dataclass(frozen=True, kw_only=True)
class TowerOptions:
    """Two towers into a common space.

    Attributes:
        audio: "resnet38", "cnn14", "cnn10", or hf:MODEL for a pretrained network of `transformers`, which brings its
            weights and its windows (docs/encoders.md); the options of the other networks then say nothing.
        audio_weights: "untrained", or a published PANNs file.
        audio_width: channels of the first block; 64 is the published size.
        augment: whether SpecAugment acts while training.
        text: "bert", "word2vec" (the mean of frozen word vectors), or hf:MODEL as `audio`.
        text_weights: "untrained", a local BERT folder, or a Word2Vec file.
        text_layers: of an untrained BERT.
        text_dimension: of an untrained BERT (a multiple of 64, or less than 128), or of word vectors (300).
        vocabulary: word pieces of an untrained BERT, learned from the training captions.
        dropout: of the audio network and of BERT.
        blocks: of hf:MODEL that are trained, from the end, with what follows them; 0 trains what follows them alone
            (its own projection), "all" the whole network. Frozen networks are trained in nothing.
        heads: "layers", two new ones on each network (Mei et al.), or "none": the networks' own outputs are compared.
        hidden: width of the heads' hidden layer; 0 takes the paper's.
        dimension: of the common space; without heads, that of both networks.
        recall: what the recall sum that chooses the epoch adds up: "text-audio" (the released code) or "both".
        start: a run folder of the same networks whose weights training begins with; "" for none.
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
    """Whose network is not trained; the heads always are.

    Attributes:
        freeze: "none", "audio", "text" or "both".
        frozen_mode: "eval", or "train" as in the released code (see `Tower`).
    """

    freeze: Literal["none", "audio", "text", "both"] = "none"
    frozen_mode: Literal["eval", "train"] = "eval"


@dataclass(frozen=True, kw_only=True)
class CurriculumOptions:
    """How training is divided into an easy, a median and a hard stage, and how their batches are built.

    Attributes:
        shares: epochs of the stages easy, median and hard, as parts of training.epochs; each has at least one.
        ancillary_epochs: of the model whose vectors of the pairs make the batches, the method `audio-text` of the same
            options; 0 takes the network as it begins.
        ancillary_batch: pairs a batch of that model; 0 takes training.batch.
        mining: whether batches are built; without, all stages take shuffled ones (the paper's "without mining").
        pair: what describes a pair: "sum" of both unit vectors, "audio", "text" or "concatenation".
        easy_builder: of easy batches; "auto" is "stratified".
        hard_builder: of hard batches; "auto" is "seeded-nearest".
        dedupe: keep equal captions and clips apart in hard batches.
        rebuild_every: epochs after which a stage builds its batches anew; 0 never.
        freeze_scope: what of the other side is left alone: "encoder" (all) or "backbone" (all but its head).
        until: last stage that is run.
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
