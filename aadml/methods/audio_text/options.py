"""Options that the methods of sound and captions share."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Interval, MinLen, MultipleOf

from aadml.comparison.options import Count, CountOrZero, Dropout, Width
from aadml.data.captions.cleaning import CLEANINGS
from aadml.data.sources.loading import Loading
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS
from aadml.feature_extraction.ground.option_types import Choice
from aadml.feature_extraction.ground.options import removing
from aadml.methods.towers.options import FineTuning, HubModel, Mebibytes

Name = Annotated[str, MinLen(1)]
"""Published weights: a path, or "untrained"."""
UNTRAINED = "untrained"
Part = Annotated[float, Interval(gt=0, le=1e6)]


@removing(workers=..., log_mel=...)
@dataclass(frozen=True, kw_only=True)
class CaptionedOptions:
    """Options of reading sound and captions.

    Attributes:
        memory_mib: memory in MiB for a cache of spectrograms, or of inputs of networks of `transformers`; cached
            sound is not decoded again.
        disk_mib: total disk space in MiB of `$AADML_CACHE/decoded`; 0 for no cache on disk. The folder contains
            spectrograms of sound files, or decoded media for networks of `transformers` that are not frozen.
        cleaning: cleaning of captions, a key of CLEANINGS.
        captions: largest number of captions that are used per clip.
    """

    memory_mib: Mebibytes = 1024
    disk_mib: Mebibytes = 4096
    cleaning: Annotated[str, Choice(CLEANINGS)] = "mei"
    captions: Count = 5

    @property
    def loading(self) -> Loading:
        """Caches of spectrograms, or of decoded media for networks of `transformers`."""
        return Loading.of(memory_mib=self.memory_mib, disk_mib=self.disk_mib)


@dataclass(frozen=True, kw_only=True)
class FrameWordOptions:
    """Options of a CRNN on sound, and of vectors of words.

    Attributes:
        channels: number of channels of the CRNN's wide convolutions (128: published size).
        dropout: share of units dropped before the GRU.
        text_weights: a Word2Vec file, or "untrained" for a random vector per word.
        text_dimension: dimension of the vectors of words and frames.
    """

    channels: Annotated[int, Interval(ge=4, le=4096), MultipleOf(4)] = 128
    dropout: Dropout = 0.3
    text_weights: Name = UNTRAINED
    text_dimension: Annotated[int, Interval(ge=2, le=65_536), MultipleOf(2)] = 300


@dataclass(frozen=True, kw_only=True)
class RelevanceOptions:
    """Options of scoring frames against words.

    Attributes:
        score_rate: "native" for one vector per frame of the spectrogram, or "pooled" for one per four frames (the
            output of the GRU before interpolation).
        legacy_padding: whether to average over the padding in training, as the released code does.
        choose: validation score that chooses the epoch: "loss" (the paper) or "map".
    """

    score_rate: Literal["native", "pooled"] = "native"
    legacy_padding: bool = False
    choose: Literal["loss", "map"] = "loss"


@dataclass(frozen=True, kw_only=True)
class TowerOptions(FineTuning):
    """Options of two towers that embed into a common space.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Attributes:
        audio: "resnet38", "cnn14", "cnn10", or hf:MODEL for a pretrained network of `transformers` with its weights
            and windows (docs/encoders.md). With hf:MODEL, the options of the other audio networks have no effect.
        audio_weights: "untrained", or a published PANNs file.
        audio_width: channels of the first block; 64 is the published size.
        augment: whether to apply SpecAugment in training.
        text: "bert", "word2vec" (the mean of frozen word vectors), or hf:MODEL as for `audio`.
        text_weights: "untrained", a local BERT folder, or a Word2Vec file.
        text_layers: number of layers of an untrained BERT.
        text_dimension: width of an untrained BERT, which is a multiple of 64 or less than 128; with "word2vec", the
            dimension of the word vectors, such as 300.
        vocabulary: number of word pieces of an untrained BERT. The word pieces are learned from the training
            captions.
        dropout: share of units dropped in the audio network and BERT.
        heads: "layers" for two new layers after each network (Mei et al.), or "none" to compare the networks'
            outputs.
        hidden: width of the heads' hidden layer; 0 for the width in the paper.
        dimension: dimension of the common space; without heads, the dimension of both networks.
        recall: directions of the recall sum that chooses the epoch: "text-audio" (the released code) or "both".
        start: folder of a run of the same networks, whose weights are the initial weights; "" for new weights.
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
    heads: Literal["layers", "none"] = "layers"
    hidden: Annotated[int, Interval(ge=0, le=65_536)] = 0
    dimension: Width = 1024
    recall: Literal["text-audio", "both"] = "text-audio"
    start: str = ""


@dataclass(frozen=True, kw_only=True)
class Freezing:
    """Options of frozen networks; heads are always trained.

    Attributes:
        freeze: frozen networks: "none", "audio", "text" or "both".
        frozen_mode: mode of frozen networks: "eval", or "train" as in the released code (see `CaptionTower`).
    """

    freeze: Literal["none", "audio", "text", "both"] = "none"
    frozen_mode: Literal["eval", "train"] = "eval"


@dataclass(frozen=True, kw_only=True)
class CurriculumOptions:
    """Options of training in an easy, a median and a hard stage, and of building their batches.

    Attributes:
        shares: shares of training.epochs for the stages easy, median and hard; each stage has at least one epoch.
        ancillary_epochs: epochs of the ancillary model, the method `audio-text` with the same options. The vectors of
            this model determine the batches; 0 uses the vectors of the initial network.
        ancillary_batch: pairs per batch of the ancillary model; 0 for training.batch.
        mining: whether batches are built from vectors; if false, the batches of all stages are shuffled (the paper's
            "without mining").
        dedupe: whether pairs with equal captions or clips are in different hard batches.
        until: last stage of training.
        score_stages: whether to score the best weights of every stage, not only of the last.
    """

    shares: tuple[Part, Part, Part] = (10.0, 10.0, 30.0)
    ancillary_epochs: CountOrZero = 50
    ancillary_batch: CountOrZero = 0
    mining: bool = True
    dedupe: bool = True
    until: Literal["easy", "median", "hard"] = "hard"
    score_stages: bool = False
