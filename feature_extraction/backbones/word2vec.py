"""Word vectors from published Word2Vec files, binary or text, and the table of a vocabulary's vectors (XIE)."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError

Vector = NDArray[np.float32]
PAD = 0
_NEARLY_ORTHOGONAL = 0.25
_TRIES = 200


@dataclass(frozen=True)
class WordTable:
    """The vectors of a vocabulary.

    Attributes:
        words: id -> word; id 0 is the padding, the last id stands for every word that is not in the file.
        vectors: (v, d) float32; the padding's is zero.
        missing: words that were asked for and have no vector of their own, sorted.
        trained: whether the vectors come from a file.
    """

    words: tuple[str, ...]
    vectors: Vector
    missing: tuple[str, ...]
    trained: bool = True

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """Give the id of each token; unknown ones share the last."""
        index = self.index()
        return [index.get(token, len(self.words) - 1) for token in tokens]

    def index(self) -> dict[str, int]:
        """Map each word with a vector of its own to its id."""
        return {word: i for i, word in enumerate(self.words[1:-1], start=1)}


def read_vectors(path: str | Path, words: Collection[str] | None = None) -> dict[str, Vector]:
    """Read a Word2Vec file, binary (`.bin`) or text (with or without its `count dimension` line).

    Args:
        path: the file; GoogleNews's 3.6 GB are read once, in one pass, keeping what is asked for.
        words: the words to keep; None keeps all.

    Returns:
        Word -> (d,) float32; the first of repeated words counts.

    Raises:
        InputError: no such file, or it is cut off or malformed.
    """
    wanted = None if words is None else {word.encode() for word in words}
    try:
        with Path(path).open("rb") as file:
            header = file.readline(1 << 20)
            reader = _binary(file, header, str(path)) if _is_binary(file, header) else _text(file, header, str(path))
            found: dict[str, Vector] = {}
            for word, values in reader:
                if wanted is None or word in wanted:
                    found.setdefault(word.decode("utf-8", errors="replace"), np.array(values, dtype=np.float32))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return found


def table(vocabulary: Iterable[str], vectors: Mapping[str, Vector], *, seed: int = 0) -> WordTable:
    """Lay out the vectors of a vocabulary: padding zero, then the words found, then one vector for all others.

    A word that is not in the file is sought in its variants (`variants`); what is still missing shares one random
    unit vector that is nearly orthogonal to all words (|dot| <= 0.25 with each unit word vector).

    Args:
        vocabulary: the words of the captions.
        vectors: of `read_vectors`.
        seed: of the shared vector.

    Raises:
        InputError: none of the words has a vector, or no vector is nearly orthogonal to all of them.
    """
    asked = sorted(set(vocabulary))
    found: dict[str, Vector] = {}
    for word in asked:
        spelling = next((v for v in variants(word) if v in vectors), None)
        if spelling is not None:
            found[word] = vectors[spelling]
    if not found:
        raise InputError(f"none of the {len(asked)} words of the captions has a vector in the file")
    known = np.stack(list(found.values()))
    shared = _nearly_orthogonal(known, seed)
    matrix = np.concatenate([np.zeros((1, known.shape[1]), np.float32), known, shared[None]])
    missing = tuple(word for word in asked if word not in found)
    return WordTable(("<pad>", *found, "<missing>"), matrix, missing)


def untrained_table(vocabulary: Iterable[str], *, dimension: int = 300, seed: int = 0) -> WordTable:
    """Give every word a random unit vector: a stand-in that says of itself that it was not trained."""
    words = sorted(set(vocabulary))
    values = np.random.default_rng(seed).standard_normal((len(words) + 1, dimension)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    matrix = np.concatenate([np.zeros((1, dimension), np.float32), values])
    return WordTable(("<pad>", *words, "<missing>"), matrix, (), trained=False)


def variants(word: str) -> Sequence[str]:
    """List the spellings under which a word is sought: as it is, other capitals, compounds joined, American."""
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
        f"word vectors of {vectors.shape[1]} dimensions leave no room for a vector nearly orthogonal to {len(units)} "
        f"words (best |dot| {smallest:.2f}, wanted {_NEARLY_ORTHOGONAL})"
    )


def _is_binary(file: BinaryIO, header: bytes) -> bool:
    """Tell a binary file: its second line is not a word with as many decimal numbers as the first line says."""
    if len(header.split()) != 2 or not all(part.isdigit() for part in header.split()):
        return False
    place = file.tell()
    _, *values = file.readline(1 << 16).split() or [b""]
    file.seek(place)
    try:
        return [float(value) for value in values] == [] or len(values) != int(header.split()[1])
    except ValueError:
        return True


def _binary(file: BinaryIO, header: bytes, path: str) -> Iterator[tuple[bytes, Vector]]:
    count, dimension = (int(part) for part in header.split())
    for number in range(count):
        word = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte:
                raise InputError(f"{path}: ends in word {number + 1} of {count}; the file is cut off")
            word += byte
        values = file.read(4 * dimension)
        if len(values) < 4 * dimension:
            raise InputError(f"{path}: ends in word {number + 1} of {count}; the file is cut off")
        yield bytes(word.lstrip(b"\r\n")), np.frombuffer(values, "<f4")


def _text(file: BinaryIO, header: bytes, path: str) -> Iterator[tuple[bytes, Vector]]:
    parts = header.split()
    counted = len(parts) == 2 and all(part.isdigit() for part in parts)
    count = int(parts[0]) if counted else None
    dimension = int(parts[1]) if counted else len(parts) - 1
    lines = file if counted else chain([header], file)
    number = 0
    for number, line in enumerate(lines, start=1):
        word, *values = line.rstrip(b"\r\n ").split(b" ")
        try:
            vector = np.array([float(value) for value in values], dtype=np.float32)
        except ValueError as error:
            raise InputError(f"{path}: word {number} has a value that is not a number") from error
        if len(vector) != dimension or dimension < 1:
            raise InputError(f"{path}: word {number} has {len(vector)} values, wanted {dimension}")
        yield word, vector
    if count is not None and number < count:
        raise InputError(f"{path}: ends after word {number} of {count}; the file is cut off")
