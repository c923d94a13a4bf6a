"""Text networks with their vocabularies: BERT on word pieces, and word vectors."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from aadml.data.sources.padding import Padded
from aadml.data.sources.texts import Captions, Tokens, tokens
from aadml.feature_extraction.backbones.word2vec import read_vectors, table, untrained_table, variants
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.hub.bert import (
    LONGEST,
    bert_of,
    configuration_of,
    load_bert,
    load_word_pieces,
    small_bert,
)
from aadml.feature_extraction.layers.word_pieces import train_vocabulary, word_piece_tokenizer
from aadml.methods.audio_text.options import UNTRAINED
from aadml.methods.training.learner import ResizedBuffers

_UNKNOWN = "[UNK]"
_SHOWN = 10


class BertInput(ResizedBuffers):
    """BERT and its tokenizer; the tokenizer is saved as bytes with the weights.

    Attributes:
        dimension: dimension d of a caption's vector.
        source: "untrained", or the folder of the weights (not read if `config` is passed).

    Raises:
        InputError: the folder contains no readable BERT, or `transformers` is not installed.
    """

    __call__: Callable[..., Tensor]
    words: Tensor
    resized = ("words",)

    def __init__(
        self,
        source: str,
        *,
        layers: int,
        dimension: int,
        vocabulary: int,
        dropout: float,
        config: JsonObject | None = None,
    ) -> None:
        super().__init__()
        self.source, self.size = source, vocabulary
        tokenizer = ""
        if config is not None:
            self.network = bert_of(config)
        elif source != UNTRAINED:
            self.network = load_bert(source, dropout=dropout)
            tokenizer = load_word_pieces(source).to_str()
        else:
            heads = max(1, dimension // 64)
            self.network = small_bert(vocabulary, layers=layers, dimension=dimension, heads=heads, dropout=dropout)
        self.dimension = self.network.dimension
        self.longest = min(LONGEST, int(self.network.model.config.max_position_embeddings))
        self.register_buffer("words", _as_bytes(tokenizer))

    def configuration(self) -> JsonObject | None:
        """Return the configuration of a BERT whose weights were read from a folder; None for an untrained BERT."""
        return None if self.source == UNTRAINED else configuration_of(self.network)

    def learn_words(self, captions: Captions) -> None:
        """Train the vocabulary on the training captions, unless the vocabulary was read with the weights."""
        if self.source == UNTRAINED:
            vocabulary = train_vocabulary(captions.texts, size=self.size)[: self.size]
            self.words = _as_bytes(word_piece_tokenizer(vocabulary).to_str()).to(self.words.device)

    def tokens(self, captions: Captions) -> Tokens:
        """Return the word pieces of captions as ids.

        Raises:
            InputError: the vocabulary is empty, because the method is not fitted.
        """
        if not len(self.words):
            raise InputError("the vocabulary is empty; fit the method first")
        return tokens(captions, self._encode, longest=self.longest)

    def forward(self, batch: Padded) -> Tensor:
        """Compute the vectors (b, dimension) of a batch of ids (b, w)."""
        vectors: Tensor = self.network(batch.values, batch.mask())
        return vectors

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        import tokenizers

        tokenizer: Any = tokenizers.Tokenizer.from_str(bytes(self.words.tolist()).decode())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        encoded = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
        unknown = tokenizer.token_to_id(_UNKNOWN)
        if count := sum(unknown in ids for ids in encoded):
            warnings.warn(
                f"{count} of {len(encoded)} captions have words that the vocabulary cannot spell; {_UNKNOWN} replaces "
                "these words",
                stacklevel=2,
            )
        return encoded


class WordInput(ResizedBuffers):
    """Frozen word vectors of the vocabulary of the training captions; all other words share one vector.

    Attributes:
        dimension: dimension d of a word's vector.
        source: "untrained" (a random vector per word), or a Word2Vec file.
    """

    __call__: Callable[..., Tensor]
    words: Tensor
    vectors: Tensor
    resized = ("words", "vectors")

    def __init__(self, source: str, *, dimension: int, seed: int, pooled: bool = True) -> None:
        super().__init__()
        self.source, self.seed, self.dimension, self.pooled = source, seed, dimension, pooled
        self.register_buffer("words", torch.zeros(0, dtype=torch.uint8))
        self.register_buffer("vectors", torch.zeros(0, dimension))

    def learn_words(self, captions: Captions) -> None:
        """Build the vocabulary and its vectors from the training captions.

        Raises:
            InputError: the file of word vectors cannot be read, has vectors of another dimension than `dimension`,
                or does not fit the words (see `aadml.feature_extraction.backbones.word2vec.table`).
        """
        words = {word for text in captions.texts for word in text.split()}
        if self.source == UNTRAINED:
            vocabulary = untrained_table(words, dimension=self.dimension, seed=self.seed)
        else:
            spellings = {spelling for word in words for spelling in variants(word)}
            vocabulary = table(words, read_vectors(self.source, spellings), seed=self.seed)
        if (width := vocabulary.vectors.shape[1]) != self.dimension:
            hint = f"set method.text_dimension to {width}"
            if not self.pooled and width % 2:  # the frames of xie are outputs of a GRU of two directions
                hint = "choose a file of vectors of an even dimension"
            raise InputError(
                f"{self.source}: the vectors have {width} dimensions, but method.text_dimension is {self.dimension}; "
                f"{hint}"
            )
        self.words = _as_bytes("\n".join(vocabulary.words)).to(self.words.device)
        self.vectors = torch.from_numpy(vocabulary.vectors).to(self.vectors.device)

    def tokens(self, captions: Captions) -> Tokens:
        """Return the ids of the words of captions.

        Raises:
            InputError: the vocabulary is empty, because the method is not fitted.
        """
        if not len(self.words):
            raise InputError("the vocabulary is empty; fit the method first")
        names = bytes(self.words.tolist()).decode().split("\n")
        index = {word: number for number, word in enumerate(names)}
        last = len(names) - 1
        unknown = {word for text in captions.texts for word in text.split()} - index.keys()
        if unknown:
            shown = ", ".join(sorted(unknown)[:_SHOWN]) + ", ..." * (len(unknown) > _SHOWN)
            warnings.warn(
                f"{len(unknown)} words of {len(captions)} captions are unknown and share one vector: {shown}",
                stacklevel=2,
            )
        return tokens(captions, lambda texts: [[index.get(word, last) for word in text.split()] for text in texts])

    def forward(self, batch: Padded) -> Tensor:
        """Return the vectors (b, w, d) of ids (b, w).

        With `pooled`, the result is the mean vector of the words of each caption, with shape (b, d).
        """
        vectors = self.vectors[batch.values]
        if not self.pooled:
            return vectors
        mask = batch.mask()[..., None]
        return (vectors * mask).sum(1) / mask.sum(1)


def _as_bytes(text: str) -> Tensor:
    return torch.tensor(list(text.encode()), dtype=torch.uint8)
