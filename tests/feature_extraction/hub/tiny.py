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
