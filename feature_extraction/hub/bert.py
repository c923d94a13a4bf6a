"""BERT (Devlin et al., NAACL 2019) from `transformers`; a caption's vector is the last hidden state of [CLS].

Reference: Devlin et al., BERT: pre-training of deep bidirectional transformers for language understanding, NAACL 2019,
https://doi.org/10.18653/v1/N19-1423
"""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.transformers_library import refuse_kernels, transformers_for
from aadml.feature_extraction.hub.families import Tower
from aadml.feature_extraction.hub.loading import network_of, processor_of
from aadml.feature_extraction.hub.snapshot import Snapshot, find
from aadml.feature_extraction.layers.word_pieces import SPECIAL

LONGEST = 512  # tokens, the number of positions of bert-base
_TOWER = Tower("BertModel", {})


class Bert(nn.Module):
    """Network from token ids to one vector per caption.

    Attributes:
        dimension: dimension of the vectors.
        model: network of `transformers`, without its pooler.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.dimension = int(model.config.hidden_size)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Compute one vector per caption.

        Args:
            ids: (b, w) int64 token ids.
            mask: (b, w) bool; True for tokens, False for padding.

        Returns:
            (b, dimension) vectors.
        """
        vectors: Tensor = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state[:, 0]
        return vectors


def load_bert(folder: str | Path, *, dropout: float = 0.2) -> Bert:
    """Load a published BERT.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Args:
        folder: folder saved by `transformers` (`config.json`, `model.safetensors`, tokenizer files).
        dropout: dropout rate of hidden states and attention (0.2: Mei et al., Interspeech 2022).

    Raises:
        InputError: the folder does not exist or contains no readable BERT, or `transformers` is not installed.
    """
    snapshot = _snapshot(folder)
    if snapshot.model_type != "bert":
        raise InputError(f"{folder} contains a model of type '{snapshot.model_type}'; pass the folder of a BERT")
    chances = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return Bert(network_of(snapshot, _TOWER, add_pooling_layer=False, **chances))


def small_bert(words: int, *, layers: int = 2, dimension: int = 128, heads: int = 2, dropout: float = 0.1) -> Bert:
    """Build a small BERT with random weights, for sample clips and tests.

    Args:
        words: size of the vocabulary.
        layers: number of layers.
        dimension: dimension of hidden states; the feed-forward layers are four times as wide.
        heads: number of attention heads.
        dropout: dropout rate of hidden states and attention.

    Raises:
        MissingExtraError: `transformers` is not installed.
    """
    return bert_of({
        "vocab_size": words, "num_hidden_layers": layers, "hidden_size": dimension, "num_attention_heads": heads,
        "intermediate_size": 4 * dimension, "hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout,
        "max_position_embeddings": 128,
    })  # fmt: skip


def configuration_of(bert: Bert) -> JsonObject:
    """Return the configuration of a network as JSON, without path of the files and version of `transformers`."""
    config = bert.model.config.to_dict()
    return {key: value for key, value in config.items() if key not in ("_name_or_path", "transformers_version")}


def bert_of(configuration: JsonObject) -> Bert:
    """Build a network with random weights from the result of `configuration_of`.

    Raises:
        InputError: the configuration names code on the hub.
        MissingExtraError: `transformers` is not installed.
    """
    transformers = transformers_for("BERT")
    refuse_kernels(configuration, "BERT")
    return Bert(transformers.BertModel(transformers.BertConfig(**configuration), add_pooling_layer=False))


def load_word_pieces(folder: str | Path) -> Any:
    """Load the tokenizer in the folder of a published BERT, as a tokenizer of the `tokenizers` library.

    Raises:
        InputError: the folder contains no model, or no readable tokenizer with words and the special tokens of a
            BERT, or `transformers` is not installed.
    """
    loaded = processor_of(_snapshot(folder), "AutoTokenizer", ("tokenizer.json", "vocab.txt")).backend_tokenizer
    absent = [token for token in ("[CLS]", "[SEP]", "[UNK]") if loaded.token_to_id(token) is None]
    if absent or loaded.get_vocab_size() <= len(SPECIAL):
        raise InputError(
            f"{folder}: the tokenizer lacks {absent[0] if absent else 'words'}, which a BERT needs; "
            "copy the tokenizer files of a BERT into this folder"
        )
    return loaded


def _snapshot(folder: str | Path) -> Snapshot:
    if not (Path(folder) / "config.json").is_file():
        raise InputError(
            f"{folder} is not a folder with a BERT (config.json is missing); download a BERT with "
            "`hf download google-bert/bert-base-uncased --local-dir FOLDER`"
        )
    return find(str(folder), None)
