"""Features of text from a pretrained network of `transformers`: one vector per text."""

from typing import Any

import numpy as np

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.hub.families import Item, TextTower
from aadml.feature_extraction.hub.loading import configuration_of, processor_of
from aadml.feature_extraction.hub.networks import Precision, Preparation, encoder, tower_of
from aadml.feature_extraction.hub.snapshot import Snapshot, find
from aadml.feature_extraction.media import Text

_BATCH = 16  # texts
_STEP = 16  # tokens; texts are padded to a multiple of this number, so that there are few shapes
_VOCABULARIES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)
_OFFSET = ("roberta", "xlm-roberta", "data2vec-text", "mpnet", "clap", "clap_text_model")
"""Architectures whose positions start after the id of the padding token."""


def hf_text(
    *,
    model: str = "",
    revision: str | None = None,
    pooling: str | None = None,
    precision: Precision = "float32",
    device: str = "auto",
) -> Extractor:
    """Build an extractor from a pretrained network of `transformers` (CLIP, CLAP, SigLIP, BERT ...): `--text hf:MODEL`.

    Args:
        model: folder, or name on the Hugging Face Hub.
        revision: branch, tag or commit on the hub; None for the newest commit.
        pooling: name of a pooling of the outputs; None for the default of the model or its family, see
            docs/encoders.md.
        precision: `float32`; `bfloat16` (autocast); `auto` (bfloat16 if the hardware supports it, otherwise float32).
        device: `auto`, `cpu` or `cuda`.

    Returns:
        The extractor, which truncates a text that is too long for the network.

    Raises:
        InputError: a model, revision, pooling or device that does not exist, a model of an unknown family or with
            unreadable files, or a missing package `transformers`.
    """
    snapshot = find(model, revision)
    tower = tower_of(snapshot, "text", TextTower)
    network = encoder(
        snapshot, tower, text_preparation(snapshot, tower), pooling=pooling or own_pooling(snapshot),
        device=chosen_device(device, "hf-text"), precision=precision,
    )  # fmt: skip
    return network.extractor("text", 64, "tokenizers")


def text_preparation(snapshot: Snapshot, tower: TextTower) -> Preparation:
    """Read the preparation of text from the files of a model.

    Raises:
        InputError: the tokenizer or the configuration cannot be read.
    """
    tokenizer = processor_of(snapshot, "AutoTokenizer", _VOCABULARIES)
    longest = _longest(snapshot, tokenizer)
    return Preparation(
        inputs=Text(),
        items=lambda text: [_item(tokenizer, text.tobytes().decode("utf-8"), tower, longest)],
        trial=np.frombuffer(b"a", dtype=np.uint8),
        parameters={
            "longest": longest, "filled": tower.filled, "masked": tower.masked,
            "tokenizer": type(tokenizer).__name__, "vocabulary": _vocabulary(snapshot),
        },
        batch=_BATCH,
    )  # fmt: skip


def _item(tokenizer: Any, text: str, tower: TextTower, longest: int) -> Item:
    """Convert a text to tokens, padded to a length that does not depend on other texts."""
    tokens = tokenizer(text, truncation=True, max_length=longest)["input_ids"]
    width = longest if tower.filled else min(longest, -(-len(tokens) // _STEP) * _STEP)
    padded = tokenizer(text, truncation=True, max_length=width, padding="max_length", return_attention_mask=True)
    ids, mask = (np.asarray(padded[name], dtype=np.int64) for name in ("input_ids", "attention_mask"))
    return {"input_ids": ids, "attention_mask": mask, "mask": mask} if tower.masked else {"input_ids": ids}


def _longest(snapshot: Snapshot, tokenizer: Any) -> int:
    """Return the maximum number of tokens of a text: the lowest limit of sentence encoder, tokenizer and positions."""
    config = configuration_of(snapshot)
    config = getattr(config, "text_config", config)
    positions = int(config.max_position_embeddings)
    if snapshot.model_type in _OFFSET:
        positions -= int(config.pad_token_id) + 1
    sentences: Any = snapshot.settings("sentence_bert_config.json").get("max_seq_length")
    return min(positions, int(tokenizer.model_max_length), int(sentences or positions))


def own_pooling(snapshot: Snapshot) -> str | None:
    """Return the pooling of a sentence encoder; None if the model does not state one.

    Raises:
        InputError: the model states several poolings, or a pooling that is not supported.
    """
    settings = snapshot.settings("1_Pooling/config.json")
    flags = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}  # of earlier versions
    set_flags = [key for key, value in settings.items() if key.startswith("pooling_mode_") and value is True]
    stated = settings.get("pooling_mode") or [flags.get(key, key) for key in set_flags]
    modes = list(map(str, stated if isinstance(stated, list) else [stated]))
    if len(modes) > 1 or not {*modes} <= {*flags.values()}:
        raise InputError(
            f"{snapshot.model} pools by {', '.join(modes)[:80]}, but only one of {', '.join(flags.values())} is "
            "possible; pass a pooling, as in hf:MODEL#mean"
        )
    return modes[0] if modes else None


def _vocabulary(snapshot: Snapshot) -> str:
    """Return the SHA-256 of the first file that contains the vocabulary."""
    return sha256(next(path for name in _VOCABULARIES if (path := snapshot.folder / name).is_file()))
