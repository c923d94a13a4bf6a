"""What `transformers` gives for windows, frames and texts when it is called directly, on one of them at a time."""

import numpy as np
import torch
import transformers as t
from PIL import Image


def _vector(found):
    found = getattr(found, "pooler_output", found)
    return found.detach().numpy()


def _sound(kind, call):
    def rows(folder, windows):
        network = getattr(t, kind).from_pretrained(folder).eval()
        processor = t.AutoFeatureExtractor.from_pretrained(folder)
        found = []
        for window in windows:
            inputs = processor(window, sampling_rate=processor.sampling_rate, return_tensors="pt")
            inputs = {name: v.float() if v.is_floating_point() else v for name, v in inputs.items()}
            found.append(_vector(call(network, inputs, len(window))))
        return np.concatenate(found)

    return rows


def _clap(network, inputs, _):
    inputs["is_longer"] = torch.zeros_like(inputs["is_longer"])
    return network.audio_projection(network.audio_model(**inputs).pooler_output)


def _whisper(network, inputs, samples):
    return network.encoder(**inputs).last_hidden_state[:, : -(-samples // 320)].mean(dim=1)


def _frames(network, inputs, _):
    return network(**inputs).last_hidden_state.mean(dim=1)


def _picture(kind, processor, call):
    def rows(folder, frames):
        network = getattr(t, kind).from_pretrained(folder).eval()
        prepared = getattr(t, processor).from_pretrained(folder)
        return np.concatenate([_vector(call(network, prepared(frame, return_tensors="pt"))) for frame in frames])

    return rows


def _windows(frames, *, held=True):
    """Windows of 4 frames; the last one ends with the clip."""
    held = [*frames, *[frames[-1]] * (max(0, 4 - len(frames)) if held else 0)]
    windows = [held[start : start + 4] for start in range(0, max(1, len(held) - 3), 4)]
    return windows + ([held[-4:]] if len(held) > 4 and len(held) % 4 else [])


def _video(kind, call):
    """Prepare frames with the library's processor of pictures."""

    def rows(folder, frames):
        network = getattr(t, kind).from_pretrained(folder).eval()
        prepared = t.VideoMAEImageProcessorPil.from_pretrained(folder)
        inputs = [prepared(window, return_tensors="pt")["pixel_values"] for window in _windows(frames)]
        return np.concatenate([_vector(call(network, window)) for window in inputs])

    return rows


def _video_by_hand(kind, call, *, held=True):
    """Prepare frames by hand: shorter edge 36, center 32 x 32, the colors of `tiny.VIDEO`."""

    def pixels(frame):
        height, width = frame.shape[:2]
        size = (36, 36 * height // width) if width <= height else (36 * width // height, 36)
        small = np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.BILINEAR))
        top, left = (small.shape[0] - 32) // 2, (small.shape[1] - 32) // 2
        levels = small[top : top + 32, left : left + 32].astype(np.float64) / 255
        colors = (levels - np.array([0.4, 0.5, 0.6])) / np.array([0.2, 0.25, 0.3])
        return torch.tensor(colors.transpose(2, 0, 1), dtype=torch.float32)

    def rows(folder, frames):
        network = getattr(t, kind).from_pretrained(folder).eval()
        inputs = [torch.stack([pixels(frame) for frame in window])[None] for window in _windows(frames, held=held)]
        return np.concatenate([_vector(call(network, window)) for window in inputs])

    return rows


def _mean_of_video(network, pixels):
    return network(pixels).last_hidden_state.mean(dim=1)


def _vjepa2(network, pixels):
    return network(pixel_values_videos=pixels, skip_predictor=True).last_hidden_state.mean(dim=1)


def _xclip(network, pixels):
    return network.get_video_features(pixel_values=pixels)


def _masked_mean(network, inputs, _):
    hidden, mask = network(**inputs).last_hidden_state, inputs["attention_mask"][..., None]
    return (hidden * mask).sum(dim=1) / mask.sum(dim=1)


def _patches(network, inputs):
    return network(**inputs).last_hidden_state[:, 1:].mean(dim=1)


def _all_patches(network, inputs):
    return network(**inputs).last_hidden_state.mean(dim=1)


def _features(network, inputs):
    return network.get_image_features(**inputs)


def _output(network, inputs):
    return network(**inputs)


def _text(kind, call, **options):
    def rows(folder, texts):
        network = getattr(t, kind).from_pretrained(folder).eval()
        tokenizer = t.AutoTokenizer.from_pretrained(folder)
        found = [call(network, tokenizer(text, return_tensors="pt", **options)) for text in texts]
        return np.concatenate([_vector(one) for one in found])

    return rows


def _text_features(network, inputs):
    return network.get_text_features(**inputs)


def _causal_text(network, inputs):
    network.set_attn_implementation("eager")  # otherwise a text without padding is not causal in transformers 5.24
    return network.get_text_features(**inputs)


def _clap_text(network, inputs):
    hidden = network.text_model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
    return network.text_projection(hidden.pooler_output)


def _ids(network, inputs):
    return network.get_text_features(input_ids=inputs["input_ids"])


def _tokens(network, inputs):
    return network(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).last_hidden_state.mean(dim=1)


def _pe_text(network, inputs):
    states = network.text_model(input_ids=inputs["input_ids"], output_hidden_states=True).hidden_states
    return network.text_audio_head(states[-1][:, 0])


FULL = {"padding": "max_length", "max_length": 40}
DIRECT = {
    ("clap", "audio"): _sound("ClapModel", _clap),
    ("clap fused", "audio"): _sound("ClapModel", _clap),
    ("audio-spectrogram-transformer", "audio"): _sound("ASTModel", lambda n, i, _: n(**i)),
    ("whisper", "audio"): _sound("WhisperModel", _whisper),
    ("pe_audio", "audio"): _sound("PeAudioModel", lambda n, i, _: n.get_audio_embeds(i["input_values"])),
    ("wav2vec2", "audio"): _sound("Wav2Vec2Model", _frames),
    ("hubert", "audio"): _sound("HubertModel", _frames),
    ("wavlm", "audio"): _sound("WavLMModel", _frames),
    ("clip", "visual"): _picture("CLIPModel", "CLIPImageProcessorPil", _features),
    ("siglip", "visual"): _picture("SiglipModel", "SiglipImageProcessorPil", _features),
    ("siglip2", "visual"): _picture("Siglip2Model", "Siglip2ImageProcessorPil", _features),
    ("dinov2", "visual"): _picture("Dinov2Model", "BitImageProcessorPil", _output),
    ("dinov2_with_registers", "visual"): _picture("Dinov2WithRegistersModel", "BitImageProcessorPil", _output),
    ("dinov3_vit", "visual"): _picture("DINOv3ViTModel", "SiglipImageProcessorPil", _output),
    ("videomae", "visual"): _video("VideoMAEModel", _mean_of_video),
    ("videomae of today", "visual"): _video_by_hand("VideoMAEModel", _mean_of_video),
    ("vjepa2", "visual"): _video_by_hand("VJEPA2Model", _vjepa2, held=False),
    ("xclip", "visual"): _video("XCLIPModel", _xclip),
    ("metaclip_2", "visual"): _picture("MetaClip2Model", "CLIPImageProcessorPil", _features),
    ("aimv2", "visual"): _picture("Aimv2Model", "CLIPImageProcessorPil", _features),
    ("aimv2_vision_model", "visual"): _picture("Aimv2VisionModel", "CLIPImageProcessorPil", _all_patches),
    ("data2vec-vision", "visual"): _picture("Data2VecVisionModel", "BeitImageProcessorPil", _patches),
    ("data2vec-audio", "audio"): _sound("Data2VecAudioModel", _frames),
    ("wav2vec2-bert", "audio"): _sound("Wav2Vec2BertModel", _masked_mean),
    ("xclip", "text"): _text("XCLIPModel", _text_features),
    ("metaclip_2", "text"): _text("MetaClip2Model", _text_features),
    ("aimv2", "text"): _text("Aimv2Model", _causal_text),
    ("data2vec-text", "text"): _text("Data2VecTextModel", _tokens),
    ("clap", "text"): _text("ClapModel", _clap_text),
    ("clip", "text"): _text("CLIPModel", _text_features),
    ("siglip", "text"): _text("SiglipModel", _ids, **FULL),
    ("siglip2", "text"): _text("Siglip2Model", _ids, **FULL),
    ("pe_audio", "text"): _text("PeAudioModel", _pe_text),
    ("bert", "text"): _text("BertModel", _tokens),
    ("sentence encoder", "text"): _text("BertModel", _tokens, truncation=True, max_length=12),
    ("roberta", "text"): _text("RobertaModel", _tokens),
    ("xlm-roberta", "text"): _text("XLMRobertaModel", _tokens),
    ("mpnet", "text"): _text("MPNetModel", _tokens),
    ("distilbert", "text"): _text("DistilBertModel", _tokens),
    ("modernbert", "text"): _text("ModernBertModel", _tokens),
}
"""(network, modality) -> (folder, windows, frames or texts) -> (n, d)."""
