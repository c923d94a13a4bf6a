"""Tiny random networks of every family, in folders as `save_pretrained` writes them."""

import json

import torch
import transformers as t
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

SENTENCE = "a dog barks while rain falls on the old tin roof and someone is clapping loudly near by"
WIDTH = {"projection_dim": 12}
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


def save(network, folder):
    """Write a network whose weights are large enough to tell inputs apart."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in network.parameters():
            weights += 0.1 * torch.randn(weights.shape, generator=generator)
    network.save_pretrained(folder)


def tokenizer(folder, *, kind="PreTrainedTokenizerFast", first="[CLS]", last="[SEP]", pad="[PAD]", longest=40):
    special = [pad, first, last, "[UNK]"]
    fast = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    fast.train_from_iterator([SENTENCE], trainers.WordLevelTrainer(special_tokens=special))
    fast.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(first, 1), (last, 2)]
    )
    getattr(t, kind)(
        tokenizer_object=fast, pad_token=pad, cls_token=first, sep_token=last, unk_token="[UNK]", eos_token=last,
        bos_token=first, model_max_length=longest,
    ).save_pretrained(folder)  # fmt: skip


VOCABULARY = 4 + len(set(SENTENCE.split()))
TEXT = SMALL | {"vocab_size": VOCABULARY, "max_position_embeddings": 40, "pad_token_id": 0}
PLAIN_TEXT = TEXT | {"bos_token_id": 1, "eos_token_id": 2}
PICTURE = SMALL | {"image_size": 32, "patch_size": 8}
AUDIO = {"spec_size": 128, "patch_size": 4, "patch_stride": [4, 4], "num_mel_bins": 32, "hidden_size": 32,
         "patch_embeds_hidden_size": 4, "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2], "window_size": 4,
         "projection_dim": 12}  # fmt: skip
CLIP_SIZES = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}


def clap(folder, *, fusion=False, width=12):
    text = TEXT | {"pad_token_id": 1, "projection_dim": width}
    audio = AUDIO | {"enable_fusion": fusion, "projection_dim": width}
    config = t.ClapConfig(text_config=text, audio_config=audio, projection_dim=width)
    save(t.ClapModel(config), folder)
    t.ClapFeatureExtractor(
        feature_size=32, sampling_rate=8000, hop_length=80, max_length_s=2, fft_window_size=256, frequency_max=4000,
        truncation="fusion" if fusion else "rand_trunc",
    ).save_pretrained(folder)  # fmt: skip
    tokenizer(folder)


def clap_fused(folder):
    clap(folder, fusion=True)


def ast(folder):
    save(t.ASTModel(t.ASTConfig(**SMALL, patch_size=8, max_length=64, num_mel_bins=32)), folder)
    t.ASTFeatureExtractor(num_mel_bins=32, max_length=64).save_pretrained(folder)


def whisper(folder):
    sizes = {"layers": 2, "attention_heads": 2, "ffn_dim": 24}
    sides = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in sizes.items()}
    config = t.WhisperConfig(
        **sides, d_model=16, num_mel_bins=16,
        max_source_positions=100, vocab_size=50, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, begin_suppress_tokens=None,
    )  # fmt: skip
    save(t.WhisperModel(config), folder)
    t.WhisperFeatureExtractor(feature_size=16, chunk_length=2).save_pretrained(folder)


WAVES = SMALL | {"conv_dim": [8, 8], "conv_stride": [10, 8], "conv_kernel": [20, 16], "num_feat_extract_layers": 2,
                 "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "vocab_size": 8}  # fmt: skip


def waves(network, config):
    def write(folder):
        save(network(config(**WAVES)), folder)
        t.Wav2Vec2FeatureExtractor(sampling_rate=8000, do_normalize=True).save_pretrained(folder)

    return write


def clip(folder):
    t.CLIPModel(t.CLIPConfig(text_config=PLAIN_TEXT | WIDTH, vision_config=PICTURE | WIDTH, **WIDTH)).save_pretrained(
        folder
    )
    t.CLIPImageProcessorPil(**CLIP_SIZES).save_pretrained(folder)
    tokenizer(folder)


def siglip(folder):
    save(t.SiglipModel(t.SiglipConfig(text_config=PLAIN_TEXT, vision_config=PICTURE)), folder)
    t.SiglipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    tokenizer(folder)


def siglip2(folder):
    vision = SMALL | {"patch_size": 8, "num_patches": 16}
    save(t.Siglip2Model(t.Siglip2Config(text_config=PLAIN_TEXT, vision_config=vision)), folder)
    t.Siglip2ImageProcessorPil(patch_size=8, max_num_patches=16).save_pretrained(folder)
    tokenizer(folder)


def dinov2(folder):
    save(t.Dinov2Model(t.Dinov2Config(**SMALL, image_size=32, patch_size=8)), folder)
    t.BitImageProcessorPil(**CLIP_SIZES).save_pretrained(folder)


def dinov2_with_registers(folder):
    config = t.Dinov2WithRegistersConfig(**SMALL, image_size=32, patch_size=8, num_register_tokens=2)
    save(t.Dinov2WithRegistersModel(config), folder)
    t.BitImageProcessorPil(**CLIP_SIZES).save_pretrained(folder)


def dinov3(folder):
    config = t.DINOv3ViTConfig(**SMALL, image_size=32, patch_size=8, num_register_tokens=2)
    save(t.DINOv3ViTModel(config), folder)
    sizes = {"size": {"height": 32, "width": 32}, "resample": 2, "image_mean": [0.4, 0.5, 0.6]}
    t.SiglipImageProcessorPil(**sizes).save_pretrained(folder)
    said = folder / "preprocessor_config.json"  # the library's own class for it needs torchvision
    said.write_text(said.read_text().replace("SiglipImageProcessorPil", "DINOv3ViTImageProcessorFast"))


def videomae(folder):
    decoder = {"decoder_hidden_size": 16, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 2,
               "decoder_intermediate_size": 24}  # fmt: skip
    save(t.VideoMAEModel(t.VideoMAEConfig(**PICTURE, **decoder, num_frames=4)), folder)
    t.VideoMAEImageProcessorPil(**CLIP_SIZES).save_pretrained(folder)


COLORS = {"do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.4, 0.5, 0.6],
          "image_std": [0.2, 0.25, 0.3]}  # fmt: skip
VIDEO = {**CLIP_SIZES, **COLORS, "do_resize": True, "resample": 2, "do_center_crop": True}


def video_processor(folder, kind):
    """Write the file of a video processor; the library's own classes need torchvision."""
    settings = json.dumps({**VIDEO, "video_processor_type": kind})
    (folder / "video_preprocessor_config.json").write_text(settings)


def videomae_of_today(folder):
    videomae(folder)
    (folder / "preprocessor_config.json").unlink()
    video_processor(folder, "VideoMAEVideoProcessor")


def vjepa2(folder):
    sizes = {"pred_hidden_size": 16, "pred_num_attention_heads": 2, "pred_num_hidden_layers": 1}
    plain = {key: value for key, value in SMALL.items() if key != "intermediate_size"}
    save(t.VJEPA2Model(t.VJEPA2Config(**plain, **sizes, patch_size=8, crop_size=32, frames_per_clip=4)), folder)
    video_processor(folder, "VJEPA2VideoProcessor")


def xclip(folder):
    mit = {"mit_hidden_size": 12, "mit_intermediate_size": 24, "mit_num_hidden_layers": 2, "mit_num_attention_heads": 2}
    vision = PICTURE | mit | {"num_frames": 4}
    config = t.XCLIPConfig(text_config=PLAIN_TEXT, vision_config=vision, prompt_num_attention_heads=2, **WIDTH)
    save(t.XCLIPModel(config), folder)
    t.VideoMAEImageProcessorPil(**CLIP_SIZES).save_pretrained(folder)
    tokenizer(folder)


def metaclip2(folder):
    config = t.MetaClip2Config(text_config=PLAIN_TEXT | WIDTH, vision_config=PICTURE | WIDTH, **WIDTH)
    save(t.MetaClip2Model(config), folder)
    t.CLIPImageProcessorPil(**CLIP_SIZES).save_pretrained(folder)
    tokenizer(folder)


def aimv2(folder):
    save(t.Aimv2Model(t.Aimv2Config(text_config=PLAIN_TEXT, vision_config=PICTURE, **WIDTH)), folder)
    t.CLIPImageProcessorPil(**CLIP_SIZES).save_pretrained(folder)
    tokenizer(folder)


def aimv2_vision_model(folder):
    save(t.Aimv2VisionModel(t.Aimv2VisionConfig(**PICTURE, use_head=False)), folder)
    t.CLIPImageProcessorPil(**CLIP_SIZES).save_pretrained(folder)


def data2vec_vision(folder):
    save(t.Data2VecVisionModel(t.Data2VecVisionConfig(**PICTURE)), folder)
    t.BeitImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)


def data2vec_text(folder):
    save(t.Data2VecTextModel(t.Data2VecTextConfig(**TEXT)), folder)
    tokenizer(folder)


def data2vec_audio(folder):
    position = {"conv_pos_kernel_size": 3, "num_conv_pos_embeddings": 2}
    save(t.Data2VecAudioModel(t.Data2VecAudioConfig(**WAVES | position)), folder)
    t.Wav2Vec2FeatureExtractor(sampling_rate=8000, do_normalize=True).save_pretrained(folder)


def wav2vec2_bert(folder):
    sizes = {"feature_projection_input_dim": 32, "conv_depthwise_kernel_size": 3, "vocab_size": 8}
    save(t.Wav2Vec2BertModel(t.Wav2Vec2BertConfig(**SMALL, **sizes)), folder)
    t.SeamlessM4TFeatureExtractor(feature_size=16, num_mel_bins=16, sampling_rate=8000).save_pretrained(folder)


PE = SMALL | {"head_dim": 8, "num_key_value_heads": 2}
DAC = {"encoder_hidden_size": 4, "downsampling_ratios": [2, 4, 5], "hidden_size": 32, "codebook_dim": 8,
       "hop_length": 40, "sampling_rate": 8000}  # fmt: skip
MODERN = {**TEXT, "model_type": "modernbert", "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1,
          "sep_token_id": 2, "global_attn_every_n_layers": 1}  # fmt: skip


def pe_audio(folder):
    config = t.PeAudioConfig(text_config=MODERN, audio_config={**PE, "dac_config": {**DAC, "model_type": "dac"}})
    save(t.PeAudioModel(config), folder)
    t.PeAudioFeatureExtractor(sampling_rate=8000, hop_length=40).save_pretrained(folder)
    tokenizer(folder)


def pe_audio_video(folder):
    """Write a model whose picture tower cannot be built here: its sound tower's weights under its names."""
    pe_audio(folder)
    sound = {**PE, "dac_config": {**DAC, "model_type": "dac"}}
    config = t.PeAudioVideoConfig(text_config=MODERN, audio_video_config={**PE, "audio_config": sound})
    config.save_pretrained(folder)
    found = load_file(folder / "model.safetensors")
    named = {n if n.startswith("text_model.") else f"audio_model.{n}": weights for n, weights in found.items()}
    save_file(named, folder / "model.safetensors", {"format": "pt"})


def bert(folder):
    save(t.BertModel(t.BertConfig(**TEXT)), folder)
    tokenizer(folder)


def sentence_encoder(folder):
    bert(folder)
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 12}))


def roberta(folder):
    save(t.RobertaModel(t.RobertaConfig(**TEXT | {"pad_token_id": 0})), folder)
    tokenizer(folder)


def mpnet(folder):
    save(t.MPNetModel(t.MPNetConfig(**TEXT | {"pad_token_id": 1})), folder)
    tokenizer(folder)


def xlm_roberta(folder):
    save(t.XLMRobertaModel(t.XLMRobertaConfig(**TEXT)), folder)
    tokenizer(folder)


def distilbert(folder):
    sizes = {"dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 40}
    save(t.DistilBertModel(t.DistilBertConfig(vocab_size=VOCABULARY, **sizes)), folder)
    tokenizer(folder)


def modernbert(folder):
    t.ModernBertModel(t.ModernBertConfig(**{k: v for k, v in MODERN.items() if k != "model_type"})).save_pretrained(
        folder
    )
    tokenizer(folder)


NETWORKS = {
    "clap": (clap, ("audio", "text")),
    "clap fused": (clap_fused, ("audio",)),
    "audio-spectrogram-transformer": (ast, ("audio",)),
    "whisper": (whisper, ("audio",)),
    "wav2vec2": (waves(t.Wav2Vec2Model, t.Wav2Vec2Config), ("audio",)),
    "hubert": (waves(t.HubertModel, t.HubertConfig), ("audio",)),
    "wavlm": (waves(t.WavLMModel, t.WavLMConfig), ("audio",)),
    "clip": (clip, ("visual", "text")),
    "siglip": (siglip, ("visual", "text")),
    "siglip2": (siglip2, ("visual", "text")),
    "dinov2": (dinov2, ("visual",)),
    "dinov2_with_registers": (dinov2_with_registers, ("visual",)),
    "dinov3_vit": (dinov3, ("visual",)),
    "videomae": (videomae, ("visual",)),
    "videomae of today": (videomae_of_today, ("visual",)),
    "vjepa2": (vjepa2, ("visual",)),
    "xclip": (xclip, ("visual", "text")),
    "metaclip_2": (metaclip2, ("visual", "text")),
    "aimv2": (aimv2, ("visual", "text")),
    "aimv2_vision_model": (aimv2_vision_model, ("visual",)),
    "data2vec-audio": (data2vec_audio, ("audio",)),
    "data2vec-vision": (data2vec_vision, ("visual",)),
    "data2vec-text": (data2vec_text, ("text",)),
    "wav2vec2-bert": (wav2vec2_bert, ("audio",)),
    "pe_audio": (pe_audio, ("audio", "text")),
    "pe_audio_video": (pe_audio_video, ("audio", "text")),
    "bert": (bert, ("text",)),
    "sentence encoder": (sentence_encoder, ("text",)),
    "roberta": (roberta, ("text",)),
    "xlm-roberta": (xlm_roberta, ("text",)),
    "mpnet": (mpnet, ("text",)),
    "distilbert": (distilbert, ("text",)),
    "modernbert": (modernbert, ("text",)),
}
"""Name -> what writes the folder, and the modalities that are tried."""


def written(name, folder):
    """Write a network, once."""
    torch.manual_seed(0)
    path = folder / name.replace(" ", "-")
    if not path.exists():
        NETWORKS[name][0](path)
    return path
