"""BERT (Devlin et al., NAACL 2019) by `transformers`: a caption is the last hidden state of its [CLS] token."""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.transformers_library import refuse_kernels, silent, transformers_for
from aadml.feature_extraction.layers.word_pieces import SPECIAL

LONGEST = 512  # tokens; what bert-base has positions for
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt")


class Bert(nn.Module):
    """Token ids to one vector a caption.

    Attributes:
        dimension: d of the vectors.
        model: the network of `transformers`, without its pooler.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.dimension = int(model.config.hidden_size)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Describe captions: ids (b, w) int64 and mask (b, w) bool -> (b, dimension)."""
        hidden = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        vector = hidden[:, 0]
        assert isinstance(vector, Tensor)
        return vector


def load_bert(folder: str | Path, *, dropout: float = 0.2, download: bool = False) -> Bert:
    """Load a published BERT.

    Args:
        folder: a local folder as `transformers` saves it (`config.json`, `model.safetensors`, tokenizer files), or
            with `download` a name on the Hugging Face Hub ("google-bert/bert-base-uncased").
        dropout: of hidden states and attention (Mei et al. 2022: 0.2).
        download: whether the network may be asked.

    Raises:
        InputError: no such folder, no BERT or another model in it, or `transformers` is not installed.
    """
    transformers = transformers_for("BERT")
    _check_folder(folder, download=download)
    _check_model(folder, transformers, download=download)
    chances = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    try:
        with silent(transformers):
            model, loaded = transformers.BertModel.from_pretrained(
                folder, local_files_only=not download, add_pooling_layer=False, output_loading_info=True, **chances
            )
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: no BERT could be loaded ({str(error).splitlines()[0]})") from error
    missing = sorted(loaded["missing_keys"])
    if missing:
        raise InputError(f"{folder}: no weights for {missing[0]} ({len(missing)} such); is it another network's file?")
    return Bert(model)


def small_bert(
    words: int, *, layers: int = 2, dimension: int = 128, heads: int = 2, dropout: float = 0.1, longest: int = 128
) -> Bert:
    """Build a small BERT with random weights: untrained, for sample clips and tests.

    Args:
        words: size of the vocabulary.
        layers: number of layers.
        dimension: of hidden states; the feed-forward layers have four times as many.
        heads: of attention.
        dropout: of hidden states and attention.
        longest: tokens a caption may have.
    """
    transformers = transformers_for("BERT")
    config = transformers.BertConfig(
        vocab_size=words, num_hidden_layers=layers, hidden_size=dimension, num_attention_heads=heads,
        intermediate_size=4 * dimension, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
        max_position_embeddings=longest,
    )  # fmt: skip
    return Bert(transformers.BertModel(config, add_pooling_layer=False))


def configuration_of(bert: Bert) -> JsonObject:
    """Give all that decides the shape of a network, as plain values without the path that it was read from."""
    config = bert.model.config.to_dict()
    return {key: value for key, value in config.items() if key not in ("_name_or_path", "transformers_version")}


def bert_of(configuration: JsonObject) -> Bert:
    """Build the network that `configuration_of` described, with random weights."""
    transformers = transformers_for("BERT")
    refuse_kernels(configuration, "BERT")
    return Bert(transformers.BertModel(transformers.BertConfig(**configuration), add_pooling_layer=False))


def load_word_pieces(folder: str | Path, *, download: bool = False) -> Any:
    """Load the tokenizer that lies beside a published BERT, as one of `tokenizers`.

    Raises:
        InputError: no tokenizer is there, or not BERT's, or `transformers` is not installed.
    """
    _check_folder(folder, download=download)
    if not download and not any((Path(folder) / name).is_file() for name in TOKENIZER_FILES):
        raise InputError(
            f"{folder}: no tokenizer lies beside the BERT (neither {' nor '.join(TOKENIZER_FILES)}); copy it there"
        )
    try:
        loaded = (
            transformers_for("BERT")
            .AutoTokenizer.from_pretrained(folder, local_files_only=not download, trust_remote_code=False)
            .backend_tokenizer
        )
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: no tokenizer could be loaded ({str(error).splitlines()[0]})") from error
    absent = [token for token in ("[CLS]", "[SEP]", "[UNK]") if loaded.token_to_id(token) is None]
    if absent or loaded.get_vocab_size() <= len(SPECIAL):
        raise InputError(f"{folder}: the tokenizer is not BERT's: it has no {absent[0] if absent else 'words'}")
    return loaded


def _check_folder(folder: str | Path, *, download: bool) -> None:
    if not download and not (Path(folder) / "config.json").is_file():
        raise InputError(
            f"{folder}: no folder with a BERT in it (config.json is missing); get one with "
            "`hf download google-bert/bert-base-uncased --local-dir FOLDER`"
        )


def _check_model(folder: str | Path, transformers: Any, *, download: bool) -> None:
    """Refuse what is not BERT: `transformers` would read it, with weights of its own where names differ."""
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=not download, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: no BERT could be loaded ({str(error).splitlines()[0]})") from error
    refuse_kernels({"attn_implementation": config._attn_implementation}, folder)
    if config.model_type != "bert":
        raise InputError(f"{folder}: holds a model of type '{config.model_type}'; BERT alone can be read here")
