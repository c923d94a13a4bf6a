"""From captions to what a text network reads: word pieces for BERT, word vectors for the others."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from aadml.data.sources.padding import Padded
from aadml.data.sources.texts import Captions, Tokens, tokens
from aadml.feature_extraction.backbones.bert import (
    LONGEST,
    bert_of,
    configuration_of,
    load_bert,
    load_word_pieces,
    small_bert,
)
from aadml.feature_extraction.backbones.word2vec import read_vectors, table, untrained_table, variants
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.layers.word_pieces import train_vocabulary, word_piece_tokenizer
from aadml.methods.audio_text.options import UNTRAINED

_UNKNOWN = "[UNK]"
_SHOWN = 10


class BertInput(nn.Module):
    """BERT with its tokenizer; the tokenizer is kept with the weights, as bytes.

    Attributes:
        dimension: d of a caption's vector.
        source: "untrained", or the folder the weights come from; it is not read where a saved model gives `config`.
    """

    words: Tensor

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
        self.source = source
        self.size = vocabulary
        written = ""
        if config is not None:
            self.network = bert_of(config)
        elif source != UNTRAINED:
            self.network = load_bert(source, dropout=dropout)
            written = load_word_pieces(source).to_str()
        else:
            heads = max(1, dimension // 64)
            self.network = small_bert(vocabulary, layers=layers, dimension=dimension, heads=heads, dropout=dropout)
        self.dimension = self.network.dimension
        self.longest = min(LONGEST, int(self.network.model.config.max_position_embeddings))
        self.register_buffer("words", _as_bytes(written))

    def architecture(self) -> JsonObject:
        """Describe a network whose shape came from a folder; an untrained one follows from its options."""
        return {} if self.source == UNTRAINED else {"bert": configuration_of(self.network)}

    def learn_words(self, captions: Captions) -> None:
        """Train the vocabulary on the captions of the training split, unless it came with the weights."""
        if self.source == UNTRAINED:
            vocabulary = train_vocabulary(captions.texts, size=self.size)[: self.size]
            self.words = _as_bytes(word_piece_tokenizer(vocabulary).to_str()).to(self.words.device)

    def tokens(self, captions: Captions) -> Tokens:
        """Turn captions into ids."""
        if not len(self.words):
            raise InputError("audio-text: the vocabulary is not trained yet; fit the method first")
        return tokens(captions, self._encode, longest=self.longest)

    def forward(self, batch: Padded) -> Tensor:
        """Describe a batch of ids (b, w) -> (b, dimension)."""
        vectors = self.network(batch.values, batch.mask())
        assert isinstance(vectors, Tensor)
        return vectors

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        import tokenizers

        tokenizer: Any = tokenizers.Tokenizer.from_str(bytes(self.words.tolist()).decode())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        encoded = [one.ids for one in tokenizer.encode_batch(list(texts))]
        unknown = tokenizer.token_to_id(_UNKNOWN)
        if lacking := sum(unknown in ids for ids in encoded):
            warnings.warn(
                f"{lacking} of {len(encoded)} captions have words that the vocabulary cannot spell: {_UNKNOWN} stands "
                "for them",
                stacklevel=2,
            )
        return encoded


class WordInput(nn.Module):
    """Frozen word vectors of the training captions' vocabulary; a word that is not in it shares one vector.

    Attributes:
        dimension: d of a word's vector.
        source: "untrained" (a random vector a word), or a Word2Vec file.
    """

    words: Tensor
    vectors: Tensor

    def __init__(self, source: str, *, dimension: int, seed: int, pooled: bool = True) -> None:
        super().__init__()
        self.source = source
        self.seed = seed
        self.dimension = dimension
        self.pooled = pooled
        self.register_buffer("words", torch.zeros(0, dtype=torch.uint8))
        self.register_buffer("vectors", torch.zeros(0, dimension))

    def architecture(self) -> JsonObject:
        """Describe nothing: the vectors are kept with the weights."""
        return {}

    def learn_words(self, captions: Captions) -> None:
        """Look up the words of the training captions."""
        words = {word for text in captions.texts for word in text.split()}
        if self.source == UNTRAINED:
            found = untrained_table(words, dimension=self.dimension, seed=self.seed)
        else:
            spelled = {spelling for word in words for spelling in variants(word)}
            found = table(words, read_vectors(self.source, spelled), seed=self.seed)
        if found.vectors.shape[1] != self.dimension:
            raise InputError(f"{self.source}: vectors of {found.vectors.shape[1]} dimensions, {self.dimension} wanted")
        self.words = _as_bytes("\n".join(found.words)).to(self.words.device)
        self.vectors = torch.from_numpy(found.vectors).to(self.vectors.device)

    def tokens(self, captions: Captions) -> Tokens:
        """Turn captions into the ids of their words."""
        if not len(self.words):
            raise InputError("audio-text: the vocabulary is not learned yet; fit the method first")
        names = bytes(self.words.tolist()).decode().split("\n")
        index = {word: number for number, word in enumerate(names)}
        last = len(names) - 1
        lacking = {word for text in captions.texts for word in text.split()} - index.keys()
        if lacking:
            named = ", ".join(sorted(lacking)[:_SHOWN]) + ", ..." * (len(lacking) > _SHOWN)
            warnings.warn(f"{len(lacking)} words of {len(captions)} captions share one vector: {named}", stacklevel=2)
        return tokens(captions, lambda texts: [[index.get(word, last) for word in text.split()] for text in texts])

    def forward(self, batch: Padded) -> Tensor:
        """Look up ids (b, w): their vectors (b, w, d), or the mean over the words (b, d) where `pooled`."""
        vectors = self.vectors[batch.values]
        if not self.pooled:
            return vectors
        mask = batch.mask()[..., None]
        return (vectors * mask).sum(1) / mask.sum(1)


def resize_buffers(module: nn.Module, state: Mapping[str, Tensor], prefix: str) -> None:
    """Give buffers whose size depends on the training captions the size they have in `state`."""
    for name in ("words", "vectors", "files"):
        buffer = getattr(module, name, None)
        kept = state.get(prefix + name)
        if isinstance(buffer, Tensor) and isinstance(kept, Tensor) and buffer.shape != kept.shape:
            setattr(module, name, torch.zeros(kept.shape, dtype=buffer.dtype, device=buffer.device))


def _as_bytes(text: str) -> Tensor:
    return torch.tensor(list(text.encode()), dtype=torch.uint8)
