"""Word vectors from published Word2Vec files, binary or text, and the vectors of a vocabulary.

Source of the tables of vectors: Xie et al., DCASE 2022 (`contrastive-negative-sampling`).

Reference: Xie et al., Language-based audio retrieval task in DCASE 2022 challenge, DCASE 2022, https://arxiv.org/abs/2206.06108
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import DamagedFileError, InputError

Vector = NDArray[np.float32]
PAD = 0
_NEARLY_ORTHOGONAL = 0.25
_TRIES = 200
_DIGITS = 19  # of a number of words or dimensions


@dataclass(frozen=True)
class WordTable:
    """Vectors of a vocabulary.

    Attributes:
        words: id -> word. Id 0 is the padding, and all words without a vector share the last id.
        vectors: (v, d) float32; the vector of the padding is zero.
    """

    words: tuple[str, ...]
    vectors: Vector


def read_vectors(path: str | Path, words: Collection[str] | None = None) -> dict[str, Vector]:
    """Read a Word2Vec file, binary (`.bin`) or text (with or without its `count dimension` line).

    Args:
        path: the file, which is read in one pass (GoogleNews has 3.6 GB).
        words: words to return; None for all words.

    Returns:
        Vectors (d,) float32, by word; the first vector if a word is repeated.

    Raises:
        InputError: the file cannot be read, is truncated or is malformed, or a returned vector is not finite.
    """
    wanted = None if words is None else {word.encode() for word in words}
    vectors: dict[str, Vector] = {}
    try:
        with Path(path).open("rb") as file:
            header = file.readline(1 << 20)
            counts, size = _counts(header), os.fstat(file.fileno()).st_size
            if counts and 2 * max(counts) > size:
                stated = f"{counts[0]:,} words of {counts[1]:,} dimensions"
                raise DamagedFileError(f"{path} states {stated}, but has only {size:,} bytes; download the file again")
            reader = (
                _binary(file, *counts, str(path))
                if counts and _is_binary(file, counts[1])
                else _text(file, header, counts, str(path))
            )
            for word, values in reader:
                if wanted is None or word in wanted:
                    _check_finite(values, word, str(path))
                    vectors.setdefault(word.decode("utf-8", errors="replace"), np.array(values, dtype=np.float32))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path and its permissions") from error
    return vectors


def table(vocabulary: Iterable[str], vectors: Mapping[str, Vector], *, seed: int = 0) -> WordTable:
    """Build the table of a vocabulary: the padding, the words with a vector, and one vector for all other words.

    A word that `vectors` lacks is assigned the vector of its first spelling in `vectors` (see `variants`). Words
    without a spelling in `vectors` share one random unit vector that is nearly orthogonal to all word vectors
    (|dot| <= 0.25 with each word vector at length 1).

    Args:
        vocabulary: words of the captions.
        vectors: result of `read_vectors`.
        seed: seed of the shared vector.

    Raises:
        InputError: none of the words has a vector, or no random vector is nearly orthogonal to all word vectors.
    """
    words = sorted(set(vocabulary))
    spellings = {word: next((v for v in variants(word) if v in vectors), None) for word in words}
    known = {word: vectors[spelling] for word, spelling in spellings.items() if spelling is not None}
    if not known:
        raise InputError(
            f"word vectors: none of the {len(words)} words of the captions has a vector; choose another file"
        )
    rows = np.stack(list(known.values()))
    shared = _nearly_orthogonal(rows, seed)
    matrix = np.concatenate([np.zeros((1, rows.shape[1]), np.float32), rows, shared[None]])
    return WordTable(("<pad>", *known, "<missing>"), matrix)


def untrained_table(vocabulary: Iterable[str], *, dimension: int = 300, seed: int = 0) -> WordTable:
    """Build a table of random unit vectors: one for each word, and one for all other words.

    Args:
        vocabulary: words of the captions.
        dimension: dimension of the vectors.
        seed: seed of the vectors.
    """
    words = sorted(set(vocabulary))
    values = np.random.default_rng(seed).standard_normal((len(words) + 1, dimension)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    matrix = np.concatenate([np.zeros((1, dimension), np.float32), values])
    return WordTable(("<pad>", *words, "<missing>"), matrix)


def variants(word: str) -> Sequence[str]:
    """Return the spellings under which a word is looked up, in order and without repetition.

    The spellings are the word, the word capitalized, the word in capitals, the word with "_" for each "-", the
    word without "-", and American spellings of the word.
    """
    joined, underscored = word.replace("-", ""), word.replace("-", "_")
    american = (re.sub("(?<=...)our", "or", word), re.sub("ise(d|s|)$", r"ize\1", word), word.replace("grey", "gray"))
    spellings = (word, word.capitalize(), word.upper(), underscored, joined, *american)
    return tuple(dict.fromkeys(spellings))


def _nearly_orthogonal(vectors: Vector, seed: int) -> Vector:
    generator = np.random.default_rng((seed, 1))
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    smallest = np.inf
    for _ in range(_TRIES):
        draw: Vector = generator.standard_normal((vectors.shape[1],), dtype=np.float32)
        draw = draw / np.linalg.norm(draw)
        largest = float(np.abs(units @ draw).max())
        smallest = min(smallest, largest)
        if largest <= _NEARLY_ORTHOGONAL:
            return draw
    raise InputError(
        f"word vectors: no random vector of {vectors.shape[1]} dimensions is nearly orthogonal to all {len(units)} "
        f"words (|dot| is {smallest:.2f} at best, but must be at most {_NEARLY_ORTHOGONAL}); "
        "use word vectors of more dimensions"
    )


def _is_binary(file: BinaryIO, dimension: int) -> bool:
    """Return whether a file is binary.

    The file is text if the second line contains a word and one number for each stated dimension.
    """
    place = file.tell()
    _, *values = file.readline(1 << 16).split() or [b""]
    file.seek(place)
    try:
        return [float(value) for value in values] == [] or len(values) != dimension
    except ValueError:
        return True


def _counts(header: bytes) -> tuple[int, int] | None:
    """Return the number of words and the number of dimensions that `header` states.

    The result is None for a header with other content, such as a word with its vector. Such a file is text.
    """
    parts = header.split()
    numbers = [int(part) for part in parts if part.isdigit() and len(part) <= _DIGITS]
    return (numbers[0], numbers[1]) if len(parts) == len(numbers) == 2 else None


def _check_finite(values: Vector, word: bytes, path: str) -> None:
    if not np.isfinite(values).all():
        name = word.decode("utf-8", errors="backslashreplace")
        raise DamagedFileError(f"{path}: the vector of {name!a:.80} is not finite; download the file again")


def _binary(file: BinaryIO, count: int, dimension: int, path: str) -> Iterator[tuple[bytes, Vector]]:
    for number in range(count):
        word = bytearray()
        while (byte := file.read(1)) not in (b" ", b""):
            word += byte
        values = file.read(4 * dimension)
        if not byte or len(values) < 4 * dimension:
            raise DamagedFileError(f"{path} is truncated in word {number + 1} of {count}; download the file again")
        yield bytes(word.lstrip(b"\r\n")), np.frombuffer(values, "<f4")


def _text(file: BinaryIO, header: bytes, counts: tuple[int, int] | None, path: str) -> Iterator[tuple[bytes, Vector]]:
    count, dimension = counts or (0, len(header.split()) - 1)
    lines = file if counts else chain([header], file)
    number = 0
    for number, line in enumerate(lines, start=1):
        word, *values = line.rstrip(b"\r\n ").split(b" ")
        try:
            with np.errstate(over="ignore"):  # an infinite value is refused if the word is returned
                vector = np.array([float(value) for value in values], dtype=np.float32)
        except ValueError as error:
            raise InputError(f"{path}: word {number} has an invalid value ({error}); pass a Word2Vec file") from error
        if len(vector) != dimension or dimension < 1:
            expected = dimension if dimension > 0 else "at least 1"
            raise InputError(
                f"{path}: word {number} has {len(vector)} values instead of {expected}; pass a Word2Vec file"
            )
        yield word, vector
    if number < count:
        raise DamagedFileError(f"{path} is truncated after word {number} of {count}; download the file again")
