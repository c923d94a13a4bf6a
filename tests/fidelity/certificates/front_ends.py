"""Front ends of sound, and what is done to features on their way into a file, against their sources."""

from dataclasses import replace

import torch
from torch import Tensor

from aadml.feature_extraction.backbones.vggish import vggish_patches
from aadml.feature_extraction.frontends.log_mel import CRNN, PANNS, VGGISH, log_mel, mel_filters
from aadml.feature_extraction.frontends.quantization import dequantize, quantize
from aadml.feature_extraction.layers.spec_augment import spec_augment
from certificates.audio_text import XIE
from certificates.certificate import Arrays, Certificate, Errors, error, worst

TVG = "harritaylor/torchvggish @ f3f9096"


def samples(arrays: Arrays) -> Tensor:
    """Give the sound of a reference (..., s) as float32 in -1 to 1."""
    sound: Tensor = arrays["waveform_int16"].float() / 32768
    return sound


def _log_mel_panns(arrays: Arrays) -> Errors:
    half = arrays["half_silent_waveform"].float()
    return {
        "log-mel": worst([
            (log_mel(samples(arrays), PANNS), arrays["log_mel"]), (log_mel(half, PANNS), arrays["half_silent_log_mel"]),
        ]),
        "filters": error(torch.from_numpy(mel_filters(PANNS)), arrays["mel_matrix"]),
    }  # fmt: skip


def _log_mel_xie(arrays: Arrays) -> Errors:
    sounds = {"": samples(arrays), "half_silent_": arrays["half_silent_waveform"].float()}
    reflected = replace(CRNN, padding="reflect")
    found = {
        settings: [
            (log_mel(sound.double(), settings), arrays[f"{prefix}log_mel_pad_{kind}"])
            for prefix, sound in sounds.items()
        ]
        for settings, kind in ((CRNN, "constant"), (reflected, "reflect"))
    }
    return {"log-mel": worst(found[CRNN]), "log-mel with reflection": worst(found[reflected])}


def _log_mel_vggish(arrays: Arrays) -> Errors:
    bands = log_mel(samples(arrays).double(), VGGISH)
    return {
        "log-mel": error(bands, arrays["log_mel"]),
        "patches": error(vggish_patches(bands), arrays["patches"]),
        "filters": error(torch.from_numpy(mel_filters(VGGISH)), arrays["mel_matrix"]),
    }


def _quantization(arrays: Arrays) -> Errors:
    codes = quantize(arrays["values"].float().numpy(), rounding="nearest")
    back = dequantize(arrays["codes"].numpy())
    return {
        "codes": error(torch.from_numpy(codes).double(), arrays["quantised"].double()),
        "back": error(torch.from_numpy(back), arrays["dequantised_float64"]),
    }


def _spec_augment(arrays: Arrays) -> Errors:
    random = torch.Generator().manual_seed(0)
    kept = torch.cat([_kept(2000, random) for _ in range(10)])
    shares = {"frame": (kept.amax(2) == 0).double().mean(0), "band": (kept.amax(1) == 0).double().mean(0)}
    return {
        f"share of items whose {what} is zero": _apart(own, arrays[f"share_of_20000_items_with_{what}_zero"])
        for what, own in shares.items()
    }


def _kept(count: int, random: torch.Generator) -> Tensor:
    masks: Tensor = spec_augment(torch.ones(count, 1, 101, 64), generator=random)[:, 0]
    return masks


def _apart(found: Tensor, reference: Tensor) -> float:
    return float((found.double() - reference).abs().max())


FRONT_END_CERTIFICATES = (
    Certificate(
        "log-mel of panns", "audio_text/logmel_panns", "torchlibrosa 0.1.0, as MEI builds it", ("log-mel", "filters"),
        _log_mel_panns, tolerance=5e-6, deviations="In float32.",
    ),
    Certificate(
        "log-mel of xie", "audio_text/logmel_xie", f"{XIE}, `log_mel_spectrogram`, librosa",
        ("log-mel", "log-mel with reflection"), _log_mel_xie, tolerance=2e-6,
        deviations="Padded with zeros, as librosa 0.9.2 does, which the source pins.",
    ),
    Certificate(
        "log-mel of vggish", "audio_text/logmel_vggish", f"{TVG}, `waveform_to_examples`",
        ("log-mel", "patches", "filters"), _log_mel_vggish,
    ),
    Certificate(
        "spec-augment", "audio_text/mei_spec_augment", "torchlibrosa 0.1.0, `SpecAugmentation`, as MEI builds it",
        ("share of items whose frame is zero", "share of items whose band is zero"), _spec_augment, tolerance=0.015,
        deviations="The distribution of 20,000 draws, not draw for draw; the standard error of each share is up to "
        "0.0035.",
    ),
    Certificate(
        "8 bits of youtube-8m", "audio_text/yt8m_quantisation", "google/youtube-8m, `quantize`, `Dequantize`",
        ("codes", "back"), _quantization,
    ),
)  # fmt: skip
