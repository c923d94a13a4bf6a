"""FAMILIES: inputs and outputs of each architecture, by the `model_type` that a model declares.

For other architectures, write an extractor in a module and pass "package.module:name" (docs/encoders.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Item = dict[str, NDArray[Any]]
"""Input for one window, frame or text: argument -> array without the batch dimension. `mask` is not an argument, but
marks the outputs to pool."""
Pool = Callable[[Any, Mapping[str, "Tensor"]], "Tensor"]
"""Function from a network and a batch of items to vectors (b, d)."""


def _output(name: str, method: str = "__call__") -> Pool:
    """Return the pooling that reads the output `name` of a method of the network: one vector per item.

    A network of two towers has a method for each tower, such as "get_text_features".
    """
    return lambda network, items: getattr(getattr(network, method)(**_arguments(items)), name)


_hidden = _output("last_hidden_state")  # (b, t, d)


def _first(network: Any, items: Mapping[str, "Tensor"]) -> "Tensor":
    return _hidden(network, items)[:, 0]


def _mean(network: Any, items: Mapping[str, "Tensor"]) -> "Tensor":
    """Average the last hidden states over time or tokens, excluding the padding."""
    hidden = _hidden(network, items).float()
    if "mask" not in items:
        return hidden.mean(dim=1)
    mask = items["mask"][:, : hidden.shape[1], None].to(hidden.dtype)
    return (hidden * mask).sum(dim=1) / mask.sum(dim=1)


def _mean_of_patches(network: Any, items: Mapping[str, "Tensor"]) -> "Tensor":
    """Average the last hidden states of the patches, which follow the class and register tokens."""
    others = 1 + getattr(network.config, "num_register_tokens", 0)
    return _hidden(network, items)[:, others:].float().mean(dim=1)


def _pe_clip(kind: str) -> Pool:
    """Return the pooling by an encoder and a contrastive head of PE-AV (Perception Encoder Audiovisual).

    Args:
        kind: input of the encoder, "audio" or "video".
    """
    return lambda network, items: getattr(network, f"{kind}_head")(
        getattr(network, f"{kind}_encoder")(**_arguments(items)).pooler_output
    )


def _pe_text(kind: str) -> Pool:
    """Return the pooling that applies a text head of PE-AV to the last hidden state of the first token.

    Args:
        kind: modality with which the head compares texts, "audio" or "video".
    """
    return lambda network, items: getattr(network, f"text_{kind}_head")(
        network.text_model(**_arguments(items), output_hidden_states=True).hidden_states[-1][:, 0]
    )


def _arguments(items: Mapping[str, "Tensor"]) -> dict[str, "Tensor"]:
    return {name: values for name, values in items.items() if name != "mask"}


# functions from the model's processor and a window of samples to an item


def _clap(processor: Any, samples: NDArray[np.float32]) -> Item:
    mel = _processed(processor, samples)["input_features"]
    return {"input_features": mel, "is_longer": np.zeros(1, dtype=bool)}  # a window is never longer; no random crop


def _whisper(processor: Any, samples: NDArray[np.float32]) -> Item:
    arrays = _processed(processor, samples, return_attention_mask=True)
    return {"input_features": arrays["input_features"], "mask": arrays["attention_mask"][::2]}  # two frames per output


def _values(processor: Any, samples: NDArray[np.float32]) -> Item:
    return {"input_values": _processed(processor, samples)["input_values"]}


def _stacked_mel(processor: Any, samples: NDArray[np.float32]) -> Item:
    """Return the log-mel input of a window, with frames stacked in pairs.

    A last frame without a partner is left out, because the network would mask this frame.
    """
    return {"input_features": _processed(processor, samples, pad_to_multiple_of=None)["input_features"]}


def _processed(processor: Any, samples: NDArray[np.float32], **options: Any) -> Any:
    batch = processor(samples, sampling_rate=processor.sampling_rate, return_tensors="np", **options)
    arrays = {name: np.asarray(values)[0] for name, values in batch.items()}
    return {n: v.astype(np.float32) if np.issubdtype(v.dtype, np.floating) else v for n, v in arrays.items()}


def _ten_seconds(processor: Any) -> int:
    return 10 * int(processor.sampling_rate)


@dataclass(frozen=True)
class Tower:
    """Network of one modality in an architecture.

    Attributes:
        network: class of `transformers`.
        poolings: name -> function from network and items to one vector per item; the first pooling is the default.
        part: submodule to use; "" for the entire network.
        within: prefix of this network in the files of a larger model ("audio" for the configuration `audio_config`
            and the weights `audio_model`); "" without a prefix. Other parts of the files (the picture tower of
            PE-AV, which needs timm and torchvision) are not loaded.
        needs: package that builds a part of the network; "" for none.
        attention: implementation of the attention in `transformers`; "" for the default.
    """

    network: str
    poolings: Mapping[str, Pool]
    part: str = field(default="", kw_only=True)
    within: str = field(default="", kw_only=True)
    needs: str = field(default="", kw_only=True)
    attention: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class SoundTower(Tower):
    """Tower with one vector per window of sound.

    Attributes:
        item: function from the processor and a window of samples to the input of the network.
        window: function from the processor to the length of the longest window, in samples.
        filled: whether the processor pads a short window; otherwise the window keeps its length.
        shortest: minimum number of samples of a clip.
    """

    item: Callable[[Any, NDArray[np.float32]], Item]
    window: Callable[[Any], int]
    filled: bool
    shortest: int = 1


@dataclass(frozen=True)
class PictureTower(Tower):
    """Tower with one vector per frame, or per window of frames.

    Attributes:
        patches: whether a frame is passed as patches with the shape of their grid, instead of as one picture.
        frames: number of frames of a window, or its key in the configuration; 0 for single frames.
        rate: default frames per second.
        filled: whether a short window is padded with its last frame; otherwise the window keeps its length.
        argument: name of the pixels in the call of the network.
    """

    patches: bool = False
    frames: str | int = 0
    rate: float = 1.0
    filled: bool = True
    argument: str = "pixel_values"


@dataclass(frozen=True)
class TextTower(Tower):
    """Tower with one vector per text.

    Attributes:
        filled: whether texts are padded to the maximum length, as in training; otherwise to a multiple of 16 tokens.
        masked: whether the network receives the mask of the padding.
    """

    filled: bool = False
    masked: bool = True


_TOKENS: dict[str, Pool] = {"mean": _mean, "cls": _first}
_CLAP_SOUND = SoundTower(
    "ClapAudioModelWithProjection",
    {"projection": _output("audio_embeds")},
    _clap,
    lambda processor: int(processor.nb_max_samples),
    filled=True,
)
_CLAP_TEXT = TextTower("ClapTextModelWithProjection", {"projection": _output("text_embeds")})
_AST = SoundTower(
    "ASTModel",
    {"pooler": _output("pooler_output"), "mean": _mean},
    _values,
    lambda processor: (int(processor.max_length) - 1) * 160 + 400,  # Kaldi's frames of 25 ms, every 10 ms
    filled=True,
    shortest=400,
)
_WHISPER = SoundTower(
    "WhisperModel", {"mean": _mean}, _whisper, lambda processor: int(processor.n_samples), filled=True, part="encoder"
)
_CLIP_PICTURE = PictureTower("CLIPVisionModelWithProjection", {"projection": _output("image_embeds")})
_CLIP_TEXT = TextTower("CLIPTextModelWithProjection", {"projection": _output("text_embeds")}, filled=True)
_POOLER: dict[str, Pool] = {"pooler": _output("pooler_output")}
_SIGLIP_PICTURE = PictureTower("SiglipVisionModel", _POOLER)
_SIGLIP_TEXT = TextTower("SiglipTextModel", _POOLER, filled=True, masked=False)
_SIGLIP2_PICTURE = PictureTower("Siglip2VisionModel", _POOLER, patches=True)
_SIGLIP2_TEXT = TextTower("Siglip2TextModel", _POOLER, filled=True, masked=False)
_MEAN: dict[str, Pool] = {"mean": _mean}
_XCLIP_PICTURE = PictureTower(
    "XCLIPModel", {"projection": _output("pooler_output", "get_video_features")}, frames="vision_config.num_frames"
)
_AIM_PICTURE = PictureTower("Aimv2Model", {"projection": _output("pooler_output", "get_image_features")})
_PE_SOUND = SoundTower(
    "PeAudioModel", {"projection": _pe_clip("audio")}, _values, _ten_seconds, filled=False, shortest=1920
)
_PE_PICTURE = PictureTower(
    "PeVideoModel",
    {"projection": _pe_clip("video")},
    frames=16,
    rate=1.6,  # so that a window lasts 10 s, like a window of sound
    filled=False,
    argument="pixel_values_videos",
    needs="timm",
)
_PE_TEXT = TextTower("PeAudioModel", {"projection": _pe_text("audio")})


def _waves(network: str) -> SoundTower:
    """Return a tower over samples at 16 kHz; the shortest clip lasts 25 ms."""
    return SoundTower(network, _MEAN, _values, _ten_seconds, filled=False, shortest=400)


def _whole_text(network: str) -> TextTower:
    """Return the text tower of a network that can only be loaded with all its towers."""
    return TextTower(network, {"projection": _output("pooler_output", "get_text_features")}, filled=True)


_AIM_TEXT = replace(_whole_text("Aimv2Model"), attention="eager")  # sdpa of 5.24 is not causal without padding
_WAVES_BERT = SoundTower("Wav2Vec2BertModel", _MEAN, _stacked_mel, _ten_seconds, filled=False, shortest=560)
_VJEPA = PictureTower(
    "VJEPA2Model",
    _MEAN,
    frames="frames_per_clip",
    rate=4.0,
    filled=False,
    argument="pixel_values_videos",
    part="encoder",
)
_DINO: dict[str, Pool] = {"cls": _output("pooler_output"), "mean": _mean_of_patches}


FAMILIES: dict[str, Mapping[str, Tower]] = {
    "clap": {"audio": _CLAP_SOUND, "text": _CLAP_TEXT},
    "audio-spectrogram-transformer": {"audio": _AST},
    "whisper": {"audio": _WHISPER},
    "wav2vec2": {"audio": _waves("Wav2Vec2Model")},
    "hubert": {"audio": _waves("HubertModel")},
    "wavlm": {"audio": _waves("WavLMModel")},
    "data2vec-audio": {"audio": _waves("Data2VecAudioModel")},
    "wav2vec2-bert": {"audio": _WAVES_BERT},
    "clip": {"visual": _CLIP_PICTURE, "text": _CLIP_TEXT},
    "clip_vision_model": {"visual": _CLIP_PICTURE},
    "clip_text_model": {"text": _CLIP_TEXT},
    "metaclip_2": {
        "visual": replace(_CLIP_PICTURE, network="MetaClip2VisionModelWithProjection"),
        "text": replace(_CLIP_TEXT, network="MetaClip2TextModelWithProjection"),
    },
    "xclip": {"visual": _XCLIP_PICTURE, "text": _whole_text("XCLIPModel")},
    "aimv2": {"visual": _AIM_PICTURE, "text": _AIM_TEXT},
    "aimv2_vision_model": {"visual": PictureTower("Aimv2VisionModel", _MEAN)},
    "siglip": {"visual": _SIGLIP_PICTURE, "text": _SIGLIP_TEXT},
    "siglip2": {"visual": _SIGLIP2_PICTURE, "text": _SIGLIP2_TEXT},
    "dinov2": {"visual": PictureTower("Dinov2Model", _DINO)},
    "dinov2_with_registers": {"visual": PictureTower("Dinov2WithRegistersModel", _DINO)},
    "dinov3_vit": {"visual": PictureTower("DINOv3ViTModel", _DINO)},
    "data2vec-vision": {"visual": PictureTower("Data2VecVisionModel", {"mean": _mean_of_patches, "cls": _first})},
    "videomae": {"visual": PictureTower("VideoMAEModel", _MEAN, frames="num_frames", rate=8.0)},
    "vjepa2": {"visual": _VJEPA},
    "pe_audio": {"audio": _PE_SOUND, "text": _PE_TEXT},
    "pe_video": {
        "visual": _PE_PICTURE,
        "text": TextTower("PeVideoModel", {"projection": _pe_text("video")}, needs="timm"),
    },
    "pe_audio_video": {
        "audio": replace(_PE_SOUND, within="audio"),
        "visual": replace(_PE_PICTURE, within="video"),
        "text": replace(_PE_TEXT, within="audio"),
    },
    "bert": {"text": TextTower("BertModel", _TOKENS)},
    "roberta": {"text": TextTower("RobertaModel", _TOKENS)},
    "data2vec-text": {"text": TextTower("Data2VecTextModel", _TOKENS)},
    "xlm-roberta": {"text": TextTower("XLMRobertaModel", _TOKENS)},
    "mpnet": {"text": TextTower("MPNetModel", _TOKENS)},
    "distilbert": {"text": TextTower("DistilBertModel", _TOKENS)},
    "modernbert": {"text": TextTower("ModernBertModel", _TOKENS)},
}
"""`model_type` -> modality -> tower of the architecture. The vectors of all towers of a model are in one space."""
