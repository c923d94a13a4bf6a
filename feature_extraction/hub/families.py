"""What each architecture wants and gives: FAMILIES, by the `model_type` that a model declares.

A tower that is not in this table is refused; the way in for anything else is an extractor of one's own, as a
"package.module:name" (docs/encoders.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Item = dict[str, NDArray[Any]]
"""What a network is given for one window, frame or text: argument -> array without the dimension of the batch; `mask`
marks the outputs that are pooled and is given to no network."""
Pool = Callable[[Any, Mapping[str, "Tensor"]], "Tensor"]
"""(network, a batch of items) -> (b, d)."""


def _output(name: str) -> Pool:
    """Take an output of the network that is one vector an item."""

    def pool(network: Any, items: Mapping[str, "Tensor"]) -> "Tensor":
        found: Tensor = getattr(network(**_arguments(items)), name)
        return found

    return pool


def _first(network: Any, items: Mapping[str, "Tensor"]) -> "Tensor":
    """Take the last hidden state of the first token."""
    found: Tensor = network(**_arguments(items)).last_hidden_state[:, 0]
    return found


def _mean(network: Any, items: Mapping[str, "Tensor"]) -> "Tensor":
    """Average the last hidden states over time or tokens, padding left out."""
    hidden: Tensor = network(**_arguments(items)).last_hidden_state.float()
    if "mask" not in items:
        return hidden.mean(dim=1)
    mask = items["mask"][:, : hidden.shape[1], None].to(hidden.dtype)
    return (hidden * mask).sum(dim=1) / mask.sum(dim=1)


def _mean_of_patches(network: Any, items: Mapping[str, "Tensor"]) -> "Tensor":
    """Average the last hidden states of the patches: class and register tokens come before them."""
    before = 1 + getattr(network.config, "num_register_tokens", 0)
    found: Tensor = network(**_arguments(items)).last_hidden_state[:, before:].float().mean(dim=1)
    return found


def _pe_sound(network: Any, items: Mapping[str, "Tensor"]) -> "Tensor":
    """Take what the contrastive head of PE-AV makes of a sound."""
    found: Tensor = network.audio_head(network.audio_encoder(**_arguments(items)).pooler_output)
    return found


def _pe_text(network: Any, items: Mapping[str, "Tensor"]) -> "Tensor":
    """Take what the contrastive head of PE-AV makes of the first token of a text."""
    states = network.text_model(**_arguments(items), output_hidden_states=True).hidden_states
    found: Tensor = network.text_audio_head(states[-1][:, 0])
    return found


def _arguments(items: Mapping[str, "Tensor"]) -> dict[str, "Tensor"]:
    return {name: values for name, values in items.items() if name != "mask"}


# sound: (processor of the model, a window of samples) -> item


def _clap(processor: Any, samples: NDArray[np.float32]) -> Item:
    mel = _processed(processor, samples)["input_features"]
    return {"input_features": mel, "is_longer": np.zeros(1, dtype=bool)}  # a window is never longer; no random crop


def _whisper(processor: Any, samples: NDArray[np.float32]) -> Item:
    found = _processed(processor, samples, return_attention_mask=True)
    return {"input_features": found["input_features"], "mask": found["attention_mask"][::2]}  # two frames an output


def _values(processor: Any, samples: NDArray[np.float32]) -> Item:
    return {"input_values": np.asarray(_processed(processor, samples)["input_values"], dtype=np.float32)}


def _processed(processor: Any, samples: NDArray[np.float32], **options: Any) -> Any:
    found = processor(samples, sampling_rate=processor.sampling_rate, return_tensors="np", **options)
    arrays = {name: np.asarray(values)[0] for name, values in found.items()}
    return {n: v.astype(np.float32) if np.issubdtype(v.dtype, np.floating) else v for n, v in arrays.items()}


def _ten_seconds(processor: Any) -> int:
    return 10 * int(processor.sampling_rate)


@dataclass(frozen=True)
class SoundTower:
    """How sound is given to a network.

    Attributes:
        network: class of `transformers`.
        poolings: name -> how its outputs become one vector a window; the first is the default.
        item: makes the arguments of a window.
        window: processor -> the longest window in samples.
        filled: whether the processor fills a short window up; else it is described at its own length.
        shortest: samples that a clip must have.
        part: of the network that is kept.
        within: the part of a larger model, by the word before `_config` and `_model`, that is this network: what else
            is in its files (the picture tower of PE-AV, which needs timm and torchvision) is left alone.
    """

    network: str
    poolings: Mapping[str, Pool]
    item: Callable[[Any, NDArray[np.float32]], Item]
    window: Callable[[Any], int]
    filled: bool
    shortest: int = 1
    part: str = ""
    within: str = ""


@dataclass(frozen=True)
class PictureTower:
    """How frames are given to a network.

    Attributes:
        network: class of `transformers`.
        poolings: as of `SoundTower`, one vector a frame.
        processor: class of `transformers` whose defaults and file say how frames are resized and normalized.
        patches: whether a frame is given as patches of its own shape, not as one square.
        frames: key of the configuration that says how many frames the network is given at once; "" for one.
        rate: frames of a second that are described, where nobody says it.
    """

    network: str
    poolings: Mapping[str, Pool]
    processor: str
    patches: bool = False
    frames: str = ""
    rate: float = 1.0


@dataclass(frozen=True)
class TextTower:
    """How text is given to a network.

    Attributes:
        network: class of `transformers`.
        poolings: as of `SoundTower`, one vector a text.
        filled: whether every text is filled up to the longest one possible, as in training; else padding is masked.
        masked: whether the network is told which tokens are padding.
        within: as of `SoundTower`.
    """

    network: str
    poolings: Mapping[str, Pool]
    filled: bool = False
    masked: bool = True
    within: str = ""


@dataclass(frozen=True)
class Family:
    """The towers of an architecture, by modality.

    Attributes:
        audio: of sound.
        visual: of pictures.
        text: of text.
        shared: modalities whose vectors lie in one space.
    """

    audio: SoundTower | None = None
    visual: PictureTower | None = None
    text: TextTower | None = None
    shared: tuple[str, ...] = ()


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
_CLIP_PICTURE = PictureTower(
    "CLIPVisionModelWithProjection", {"projection": _output("image_embeds")}, "CLIPImageProcessorPil"
)
_CLIP_TEXT = TextTower("CLIPTextModelWithProjection", {"projection": _output("text_embeds")}, filled=True)
_POOLER: dict[str, Pool] = {"pooler": _output("pooler_output")}
_SIGLIP_PICTURE = PictureTower("SiglipVisionModel", _POOLER, "SiglipImageProcessorPil")
_SIGLIP_TEXT = TextTower("SiglipTextModel", _POOLER, filled=True, masked=False)
_SIGLIP2_PICTURE = PictureTower("Siglip2VisionModel", _POOLER, "Siglip2ImageProcessorPil", patches=True)
_SIGLIP2_TEXT = TextTower("Siglip2TextModel", _POOLER, filled=True, masked=False)
_PE_SOUND = SoundTower("PeAudioModel", {"projection": _pe_sound}, _values, _ten_seconds, filled=False, shortest=1920)
_PE_TEXT = TextTower("PeAudioModel", {"projection": _pe_text})
_WAVES: dict[str, Pool] = {"mean": _mean}


def _waves(network: str) -> SoundTower:
    """Give a tower that hears samples: 25 ms at 16 kHz are the shortest it makes a frame of."""
    return SoundTower(network, _WAVES, _values, _ten_seconds, filled=False, shortest=400)


_DINO = {"cls": _output("pooler_output"), "mean": _mean_of_patches}


FAMILIES: dict[str, Family] = {
    "clap": Family(_CLAP_SOUND, None, _CLAP_TEXT, shared=("audio", "text")),
    "audio-spectrogram-transformer": Family(audio=_AST),
    "whisper": Family(audio=_WHISPER),
    "wav2vec2": Family(audio=_waves("Wav2Vec2Model")),
    "hubert": Family(audio=_waves("HubertModel")),
    "wavlm": Family(audio=_waves("WavLMModel")),
    "clip": Family(None, _CLIP_PICTURE, _CLIP_TEXT, shared=("visual", "text")),
    "clip_vision_model": Family(visual=_CLIP_PICTURE),
    "clip_text_model": Family(text=_CLIP_TEXT),
    "siglip": Family(None, _SIGLIP_PICTURE, _SIGLIP_TEXT, shared=("visual", "text")),
    "siglip2": Family(None, _SIGLIP2_PICTURE, _SIGLIP2_TEXT, shared=("visual", "text")),
    "dinov2": Family(visual=PictureTower("Dinov2Model", _DINO, "BitImageProcessorPil")),
    "dinov2_with_registers": Family(visual=PictureTower("Dinov2WithRegistersModel", _DINO, "BitImageProcessorPil")),
    "dinov3_vit": Family(visual=PictureTower("DINOv3ViTModel", _DINO, "SiglipImageProcessorPil")),
    "videomae": Family(
        visual=PictureTower("VideoMAEModel", _WAVES, "VideoMAEImageProcessorPil", frames="num_frames", rate=8.0)
    ),
    "pe_audio": Family(_PE_SOUND, None, _PE_TEXT, shared=("audio", "text")),
    "pe_audio_video": Family(
        replace(_PE_SOUND, within="audio"), None, replace(_PE_TEXT, within="audio"), shared=("audio", "text")
    ),
    "bert": Family(text=TextTower("BertModel", _TOKENS)),
    "roberta": Family(text=TextTower("RobertaModel", _TOKENS)),
    "xlm-roberta": Family(text=TextTower("XLMRobertaModel", _TOKENS)),
    "mpnet": Family(text=TextTower("MPNetModel", _TOKENS)),
    "distilbert": Family(text=TextTower("DistilBertModel", _TOKENS)),
    "modernbert": Family(text=TextTower("ModernBertModel", _TOKENS)),
}
"""`model_type` -> its towers."""
