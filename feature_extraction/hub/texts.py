"""Text by a pretrained network of `transformers`: one vector a text."""

import json
from typing import Any

import numpy as np

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.hub.families import Item, TextTower
from aadml.feature_extraction.hub.loading import processor_of
from aadml.feature_extraction.hub.networks import Precision, Preparation, about, encoder, tower_of
from aadml.feature_extraction.hub.snapshot import Snapshot, find
from aadml.feature_extraction.media import Text
from aadml.feature_extraction.weights.tensor_files import sha256

_BATCH = 16  # texts run at once
_STEP = 16  # tokens: texts are filled up to a multiple, so that there are few shapes
_VOCABULARIES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)
_OFFSET = ("roberta", "xlm-roberta", "mpnet", "clap", "clap_text_model")
"""Architectures whose positions are counted from behind that of the padding token."""


def hf_text(
    *,
    model: str = "",
    revision: str | None = None,
    pooling: str | None = None,
    precision: Precision = "float32",
    device: str = "auto",
) -> Extractor:
    """Describe text by a pretrained network of `transformers` (CLIP, CLAP, SigLIP 2, BERT ...): `--text hf:MODEL`.

    Args:
        model: a folder, or a name on the Hugging Face Hub.
        revision: branch, tag or commit on the hub; None: the newest.
        pooling: how outputs become a vector; None: as the model's own files or its family do it, see docs/encoders.md.
        precision: `float32`; `bfloat16` (autocast); `auto` (bfloat16 where the hardware multiplies it).
        device: `auto`, `cpu` or `cuda`.

    Returns:
        The extractor; a text longer than the network takes is cut.

    Raises:
        InputError: no such model, one of another family, or files that cannot be read.
    """
    snapshot = find(model, revision)
    tower = tower_of(snapshot, "text", TextTower)
    found = encoder(
        snapshot, tower, text_preparation(snapshot, tower), pooling=pooling or own_pooling(snapshot),
        device=chosen_device(device, "hf-text"), precision=precision,
    )  # fmt: skip
    return found.extractor("text", about(snapshot, "tokenizers"), batch_clips=64)


def text_preparation(snapshot: Snapshot, tower: TextTower) -> Preparation:
    """Read how text is prepared from the model's own files."""
    tokenizer = processor_of(snapshot, "AutoTokenizer", _VOCABULARIES)
    longest = _longest(snapshot, tokenizer, tower)
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
    """Turn a text into tokens, filled up to a length that depends on nothing but the text."""
    found = tokenizer(text, truncation=True, max_length=longest)["input_ids"]
    width = longest if tower.filled else min(longest, -(-len(found) // _STEP) * _STEP)
    padded = tokenizer(text, truncation=True, max_length=width, padding="max_length", return_attention_mask=True)
    ids, mask = (np.asarray(padded[name], dtype=np.int64) for name in ("input_ids", "attention_mask"))
    return {"input_ids": ids, "attention_mask": mask, "mask": mask} if tower.masked else {"input_ids": ids}


def _longest(snapshot: Snapshot, tokenizer: Any, tower: TextTower) -> int:
    """Say how many tokens a text may have: what the sentence encoder, the tokenizer and the positions allow."""
    config: Any = snapshot.config.get("text_config", snapshot.config)
    positions = int(config.get("max_position_embeddings") or _default_positions(snapshot, tower))
    if snapshot.model_type in _OFFSET:
        positions -= int(config.get("pad_token_id", 1)) + 1
    own: Any = _read(snapshot, "sentence_bert_config.json").get("max_seq_length")
    return min(positions, int(tokenizer.model_max_length), int(own or positions))


def _default_positions(snapshot: Snapshot, tower: TextTower) -> int:
    """Ask the library for what a short `config.json` leaves out."""
    from aadml.feature_extraction.ground.transformers_library import transformers_for

    library = transformers_for(f"hf:{snapshot.model}")
    config = library.AutoConfig.from_pretrained(snapshot.folder, local_files_only=True, trust_remote_code=False)
    return int(getattr(config, "text_config", config).max_position_embeddings)


def own_pooling(snapshot: Snapshot) -> str | None:
    """Read how a sentence encoder pools its tokens; None where the model does not say."""
    found = _read(snapshot, "1_Pooling/config.json")
    ways = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
    chosen = [key for key, value in found.items() if key.startswith("pooling_mode_") and value is True]
    if not chosen:
        return None
    if len(chosen) > 1 or chosen[0] not in ways:
        raise InputError(f"{snapshot.model}: pools by {', '.join(chosen)}; known are {', '.join(ways)}")
    return ways[chosen[0]]


def _read(snapshot: Snapshot, name: str) -> JsonObject:
    path = snapshot.folder / name
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    return content if isinstance(content, dict) else {}


def _vocabulary(snapshot: Snapshot) -> str:
    """Give the SHA-256 of the first file that holds the vocabulary."""
    return sha256(next(path for name in _VOCABULARIES if (path := snapshot.folder / name).is_file()))
