"""Damage feature files, embeddings, indexes and ledgers, and count detected, harmless and silent damages.

One byte is changed, or a range is overwritten by zeros, at a random position. A reader must then refuse the file in one
line, or return the content of the undamaged file. A ledger may also omit a record, whose work is then repeated.

PYTHONPATH=. python scripts/soak/flips.py --count 1000 -o docs/lab/soak/flips.md
"""

import argparse
import datetime
import hashlib
import os
import platform
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import torch

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import FeatureFile, Timeline
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.foreign import hdf5
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ledger.ledger import DamagedValues, open_ledger
from aadml.feature_extraction.ledger.records import Record
from aadml.retrieval.embeddings_file import read_embeddings
from aadml.runs import environment
from aadml.search import Index

WORDS = ("detected", "harmless", "silent", "raised")
DAMAGES = ("flip", "zero")
SECONDS = 60
"""Time limit of a reader."""


@dataclass
class Tally:
    """Outcomes of the damages.

    Attributes:
        outcomes: (kind of file, damage, word) -> count; the words are `WORDS`.
        missed: kind of file -> damaged files that `verify` reports as intact although a reader refuses them.
        failures: a sentence for each silent difference and each exception that is not an InputError of one line.
    """

    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def content() -> FeatureFile:
    """Return 300 clips with sequences, times, fitted arrays, several labels, columns and a mask."""
    drawn = np.random.default_rng(0)
    features = synthetic()
    features = features.select(np.linspace(0, len(features.ids) - 1, 300).astype(np.int64))
    offsets = np.arange(301, dtype=np.int64) * 4
    width = features.features["audio"].shape[1]
    sequence = Timeline(drawn.standard_normal((1200, width)).astype(np.float32), offsets, np.tile(np.arange(4.0), 300))
    present = np.ones(300, dtype=np.bool_)
    present[7] = False
    visual = features.features["visual"].copy()
    visual[7] = 0
    return FeatureFile(
        features={"audio": features.features["audio"], "visual": visual},
        labels=features.labels, ids=features.ids, splits=features.splits, class_names=features.class_names,
        provenance=features.provenance, columns={"speaker": tuple(f"person {i % 9}" for i in range(300))},
        sequences={"audio": sequence}, fitted={"audio": {"mean": drawn.standard_normal(width).astype(np.float32)}},
        fingerprints={"audio": drawn.integers(0, 255, (300, 256)).astype(np.uint8)}, present={"visual": present},
    )  # fmt: skip


def make_feature_file(folder: Path) -> Path:
    """Write a feature file."""
    write_features(folder / "features.h5", content())
    return folder / "features.h5"


def read_feature_file(path: Path) -> Any:
    """Return the complete content of a feature file."""
    held = read_features(path)
    arrays = {f"/{name}": values for name, values in held.features.items()}
    for name, timeline in held.sequences.items():
        arrays |= {f"/{name}/values": timeline.values, f"/{name}/offsets": timeline.offsets}
        if timeline.times is not None:
            arrays[f"/{name}/times"] = timeline.times
    arrays |= {f"/{name}/{key}": values for name, fitted in held.fitted.items() for key, values in fitted.items()}
    arrays |= {f"/{name}/print": values for name, values in held.fingerprints.items()}
    arrays |= {f"/{name}/present": mask for name, mask in held.present.items()}
    arrays["/label"] = held.labels
    texts = (held.ids, held.splits, held.class_names, sorted(held.columns.items()), sorted(held.provenance.items()))
    return repr(texts), {name: hashlib.sha256(values.tobytes()).hexdigest() for name, values in arrays.items()}


def make_embeddings(folder: Path) -> Path:
    """Write a file of embeddings."""
    features = make_feature_file(folder)
    model = aadml.fit(features, method="cca")
    aadml.embed(model, features, folder / "embeddings.h5")
    return folder / "embeddings.h5"


def read_every_split(path: Path) -> Any:
    """Return the embeddings of every split of a file."""
    found = []
    for split in ("train", "valid", "test"):
        rows, name = read_embeddings(path, split)
        vectors = {m: hashlib.sha256(values.numpy().tobytes()).hexdigest() for m, values in rows.vectors.items()}
        masks = {m: mask.tolist() for m, mask in rows.present.items()}
        found.append(
            (name, vectors, masks, rows.labels.tolist(), rows.ids, rows.similarity, rows.class_names, rows.once)
        )
    return found


def make_index(folder: Path) -> Path:
    """Build an index with moments and a calibration."""
    features = make_feature_file(folder)
    Index.build(features, folder / "clips.index", moments=True).close()
    return folder / "clips.index"


def read_index(path: Path) -> Any:
    """Return hits of several queries and conditions, all items and the exported vectors."""
    query = content().features
    with Index(path) as index:
        answers: list[Any] = [len(index), index.counts(), index.columns(), index.similarity, index.modalities]
        for modality in ("audio", "visual"):
            for row in (0, 150, 299):
                for where in (None, "speaker = 'person 3'", "label >= 'M' AND split = 'train'"):
                    to: Any = modality
                    asked: Any = {modality: torch.from_numpy(query[modality][row : row + 1])}
                    vectors = {m: index.encoder.embed(values, m) for m, values in asked.items()}
                    results = index.nearest(vectors, to, k=300, where=where)
                    answers.append(
                        (results.facts_to_json(), [results.hit_to_json(n) for n in range(1, len(results.hits) + 1)])
                    )
        files = index.export(path.parent / "exported")
        answers += [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return answers


def make_ledger(folder: Path) -> Path:
    """Write a ledger of 120 records, a tenth of which are failures."""
    drawn = np.random.default_rng(0)
    with open_ledger(folder / "out.h5.work") as ledger:
        for number in range(120):
            record = Record(
                f"clip{number}", "audio", "settings", "content", (1, 2, 3), "corrupt" if number % 10 == 9 else ""
            )
            ledger.append(record, None if record.reason else drawn.standard_normal((5, 40)).astype(np.float32))
    return folder / "out.h5.work"


def read_ledger(path: Path) -> Any:
    """Return the records and values that a job would reuse; the work of a missing record is repeated."""
    reused = {}
    with open_ledger(path) as ledger:
        for number in range(120):
            record = ledger.find(f"clip{number}", "audio", "settings")
            if record is None:
                continue
            try:
                values = None if record.block is None else ledger.values(record.block).tobytes()
            except DamagedValues:
                continue
            reused[number] = (
                record.reason,
                record.content,
                record.stamp,
                values and hashlib.sha256(values).hexdigest(),
            )
    return reused


KINDS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], Any]]] = {
    "feature file": (make_feature_file, read_feature_file),
    "embeddings": (make_embeddings, read_every_split),
    "index": (make_index, read_index),
    "ledger": (make_ledger, read_ledger),
}


class Damager:
    """Files of one kind: the intact file, and damaged copies.

    Args:
        kind: key of `KINDS`.
        folder: an empty folder.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        make, self._read = KINDS[kind]
        self._kind, self._folder = kind, folder
        self._intact = make(folder)
        self._expected = self._read(self._copy())

    def trial(self, number: int, draw: Random, tally: Tally) -> None:
        """Damage a copy, then read and verify the copy in a separate process."""
        copy = self._copy()
        path = copy if copy.is_file() else draw.choice(sorted(copy.iterdir()))
        damage = draw.choice(DAMAGES)
        place = damaged(path, damage, draw)
        word, message, named = in_child(lambda: self._outcome(copy, number))
        tally.outcomes[self._kind, damage, word] += 1
        tally.missed[self._kind] += word == "detected" and not named
        if word in ("silent", "raised"):
            tally.failures.append(f"{self._kind}, {path.name}, {damage} at {place}: {word}: {message[-300:]}")

    def _outcome(self, copy: Path, number: int) -> tuple[str, str, bool]:
        if number % 20:  # inspection in a separate process takes half a second, and can only refuse more
            hdf5._inspected = lambda *_: ""
        named = False
        try:
            named = bool(aadml.verify(copy))
            word, message = self._compared(self._read(copy))
        except InputError as error:
            lines = str(error).splitlines()
            word, message = ("detected", "") if len(lines) == 1 else ("raised", str(error))
            named = named or "such" not in str(error)
        except Exception as error:
            word, message = "raised", f"{type(error).__name__}: {error}"
        return word, message, named

    def _compared(self, found: Any) -> tuple[str, str]:
        if found == self._expected:
            return "harmless", ""
        if self._kind == "ledger" and found.items() <= self._expected.items():
            return "detected", ""
        return "silent", "another content"

    def _copy(self) -> Path:
        copy = self._folder / "copy" / self._intact.name
        shutil.rmtree(copy.parent, ignore_errors=True)
        copy.parent.mkdir()
        if self._intact.is_dir():
            shutil.copytree(self._intact, copy)
        else:
            shutil.copy(self._intact, copy)
        return copy


def damaged(path: Path, damage: str, draw: Random) -> str:
    """Change a file in place and return the position of the change."""
    data = bytearray(path.read_bytes())
    start, length = draw.randrange(len(data)), 1
    if damage == "flip":
        data[start] ^= draw.randrange(1, 256)
    else:
        length = min(draw.choice((16, 512, 4096, 1 << 16)), len(data) - start)
        data[start : start + length] = bytes(length)
    path.write_bytes(data)
    return f"{start}+{length}"


def in_child(work: Callable[[], tuple[str, str, bool]]) -> tuple[str, str, bool]:
    """Run `work` in a fork, which may crash or hang."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(SECONDS)
            word, message, named = work()
            os.write(writing, f"{word}\0{message[-500:]}\0{int(named)}".encode(errors="replace"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    if not answer:
        return "raised", f"the reader ended with status {status}", False
    word, message, named = answer.split("\0")
    return word, message, named == "1"


def flips(folder: Path, count: int, *, seed: int = 0, seconds: float = float("inf")) -> Tally:
    """Damage `count` files of each kind, or fewer in a limited time."""
    tally, until = Tally(), time.monotonic() + seconds
    damagers = []
    for kind in KINDS:
        (folder / kind).mkdir()
        damagers.append(Damager(kind, folder / kind))
    draws = [Random(f"{seed} {kind}") for kind in KINDS]
    for number in range(count):
        for damager, draw in zip(damagers, draws, strict=True):
            damager.trial(number, draw, tally)
        if time.monotonic() > until:
            break
    return tally


def page(tally: Tally, seed: int, seconds: float) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Damaged bytes of feature files, embeddings, indexes and ledgers", "",
        "Made by `scripts/soak/flips.py`: one byte of a file is changed, or 16 to 65,536 bytes are zeroed, at a random",
        "place. *Detected*: a reader refuses in one line, or a ledger leaves out the record, whose work is done again.",
        "*Harmless*: the content is that of the undamaged file. *Silent*: another content without an error.", "",
        f"{datetime.date.today()}, {platform.platform()}, Python {platform.python_version()}, h5py {h5py.__version__}, "
        f"SQLite {sqlite3.sqlite_version}, commit {environment.git_commit()}, seed {seed}; {seconds:.0f} s.", "",
        "| file | damage | detected | harmless | silent | raised |", "| --- | --- | --: | --: | --: | --: |",
    ]  # fmt: skip
    for kind in KINDS:
        for damage in DAMAGES:
            counts = [tally.outcomes[kind, damage, word] for word in WORDS]
            lines.append(f"| {kind} | {damage} | {' | '.join(map(str, counts))} |")
    missed = ", ".join(f"{kind} {tally.missed[kind]}" for kind in KINDS)
    total = sum(tally.outcomes.values())
    lines += [
        "",
        f"{total} damages, {len(tally.failures)} failures. Refused by a reader and not by `verify`: {missed}.",
    ]
    return "\n".join([*lines, *(f"- {failure}" for failure in tally.failures)]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="damages of each kind of file (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the places (0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end earlier after this time")
    parser.add_argument("-o", "--output", type=Path, help="Markdown file to write")
    choices = parser.parse_args()
    torch.set_num_threads(1)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="aadml-flips-") as folder:
        tally = flips(Path(folder), choices.count, seed=choices.seed, seconds=choices.seconds)
    text = page(tally, choices.seed, time.monotonic() - began)
    if choices.output:
        choices.output.write_text(text, encoding="utf-8")
    print(text)
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
