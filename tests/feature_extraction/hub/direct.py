"""What `transformers` gives for windows, frames and texts when it is called directly, on one of them at a time."""

import numpy as np
import torch
import transformers as t


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


def _video(folder, frames):
    network = t.VideoMAEModel.from_pretrained(folder).eval()
    prepared = t.VideoMAEImageProcessorPil.from_pretrained(folder)
    held = [*frames, *[frames[-1]] * max(0, 4 - len(frames))]
    windows = [held[start : start + 4] for start in range(0, len(held) - 3, 4)]
    windows += [held[-4:]] if len(held) % 4 else []
    return np.concatenate([_frames(network, prepared(one, return_tensors="pt"), 0).detach() for one in windows])


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
    ("videomae", "visual"): _video,
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
