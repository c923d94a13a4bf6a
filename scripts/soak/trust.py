"""Replace every string in the metadata of files by `module:name`, and run every command on the files.

A model, a run (finished and interrupted), a feature file, an embeddings file, an index, a config, a sweep folder and a
manifest are written. Each string of their metadata is replaced, one at a time, by the name of a planted module: next to
the file, in the current folder, or among the installed packages. Checksums are corrected, as an attacker would do.
Every command and public function that reads such a file is then called. Without consent, no planted module may be
imported; with `--trust-code`, the modules that a command needs are imported.

For each string every call uses one of the three folders, drawn by the seed; `--all-places` uses each. One call in ten
is repeated with another form of the name (the prefix of proxies, a cutoff, a leak). A planted module records in a file
that it was imported, in any process including workers.

Usage: PYTHONPATH=. python scripts/soak/trust.py [--seed 0] [--share 1.0] [--all-places] [-o docs/lab/soak/trust.md]
"""

import argparse
import copy
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import click
import h5py
import numpy as np
import torch
import yaml

import aadml
from aadml.cli import cli
from aadml.feature_extraction.foreign.hdf5 import CHECKSUMS
from aadml.feature_extraction.ground import consent, import_paths
from aadml.feature_extraction.ground.checksummed_json import FileSum, seal
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.manifest import read_manifest
from aadml.search.checksums import seal_facts
from aadml.search.index import Index

SMALL = {"network.hidden": [8], "proxy.k": 1, "training.batch": 20, "training.epochs": 2}
PLANTED = ("beside", "current", "installed")
"""Folders of planted modules: next to the file, the current folder, the installed packages."""
SHAPES = ("aa-{}", "{}@3", "legacy:partner+{}")
"""Other forms of a name."""
_OFTEN = 0.1
"""Share of calls that are repeated with another form of the name."""
NOTES = "PLANTED_NOTES"
"""Environment variable with the file in which planted modules record that they were imported."""
MODULE = f"""
import os

with open(os.environ["{NOTES}"], "a") as notes:
    notes.write(__name__)


def f(*arguments, **options):
    raise SystemExit("planted code was called")
"""

Path_ = tuple[str | int, ...]
Call = Callable[[Path, Path], object]
"""(file or folder, empty folder for outputs) -> anything."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: name in the table.
        source: the file or folder as written.
        read: copy -> name of a document in it -> its JSON content.
        write: (copy, name, content) -> None; checksums are corrected.
        calls: name -> command line or call.
    """

    name: str
    source: Path
    read: Callable[[Path], dict[str, Any]]
    write: Callable[[Path, str, Any], None]
    calls: dict[str, Call]


@dataclass
class Tally:
    """Counts of the soak; `failures` are forbidden outcomes."""

    strings: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    consented: Counter[tuple[str, str]] = field(default_factory=Counter)
    not_searched: int = 0
    failures: list[str] = field(default_factory=list)


def strings_in(content: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of every string value in a JSON document."""
    if isinstance(content, str):
        yield path
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from strings_in(value, (*path, key))
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from strings_in(value, (*path, number))


def replaced(content: Any, path: Path_, text: str) -> Any:
    """Return a copy of a JSON document with the string at a path replaced."""
    content = copy.deepcopy(content)
    if not path:
        return text
    inner = content
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = text
    return content


def command(*words: object) -> Call:
    """Return a call of the command line; "{file}" and "{out}" are replaced."""

    def call(place: Path, out: Path) -> object:
        filled = [str(word).replace("{file}", str(place)).replace("{out}", str(out)) for word in words]
        return cli(filled, standalone_mode=False)

    return call


def run_documents(folder: Path) -> dict[str, Any]:
    """Read the JSON and YAML documents of a run or model folder."""
    read: dict[str, Any] = {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    for path in folder.glob("*.yaml"):
        read[path.name] = yaml.safe_load(path.read_text())
    return read


def write_run_document(folder: Path, name: str, content: Any) -> None:
    """Write a document of a run or model folder, with correct checksums."""
    if name.endswith(".yaml"):
        data = yaml.safe_dump(content, sort_keys=False).encode()
    elif isinstance(content, dict) and "checksum" in content:
        data = seal({key: value for key, value in content.items() if key != "checksum"})
    else:
        data = json.dumps(content).encode()
    (folder / name).write_bytes(data)
    if name == "manifest.json" or not (folder / "manifest.json").exists():
        return
    manifest = read_manifest(folder)
    if name in manifest.files:
        files = {**manifest.files, name: FileSum.of(data)}
        changed = replace(manifest, files=files)
        (folder / "manifest.json").write_bytes(changed.to_bytes())


def hdf5_documents(path: Path) -> dict[str, Any]:
    """Read the attributes of an HDF5 file and its texts: address -> content, JSON parsed."""
    documents: dict[str, Any] = {}
    with h5py.File(path) as file:
        for address, node in [("/", file), *((f"/{name}", file[name]) for name in file)]:
            for name, value in node.attrs.items():
                text = value.decode() if isinstance(value, bytes) else value
                if isinstance(text, str):
                    documents[f"{address}@{name}"] = json.loads(text) if text[:1] in "{[" else text
            if isinstance(node, h5py.Dataset) and h5py.check_string_dtype(node.dtype) and node.size:
                documents[f"{address}#"] = [node.asstr()[()].reshape(-1)[0]]
    return documents


def write_hdf5_document(path: Path, name: str, content: Any) -> None:
    """Write an attribute, or the first text of a dataset."""
    with h5py.File(path, "r+") as file:
        file.attrs.pop(CHECKSUMS, None)
        if name.endswith("#"):
            values = file[name[:-1]][()]
            values.reshape(-1)[0] = content[0]
            file[name[:-1]][...] = values
            return
        address, _, attribute = name.partition("@")
        file[address].attrs[attribute] = content if isinstance(content, str) else json.dumps(content)


def index_documents(path: Path) -> dict[str, Any]:
    """Read the facts and the first item of an index."""
    with closing(sqlite3.connect(path)) as database:
        return {name: json.loads(value) for name, value in database.execute("SELECT name, value FROM meta")}


def write_index_document(path: Path, name: str, content: Any) -> None:
    """Write a fact of an index."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE meta SET value = ? WHERE name = ?", (json.dumps(content), name))
        seal_facts(database)


def yaml_documents(path: Path) -> dict[str, Any]:
    """Read a config file."""
    return {"": yaml.safe_load(path.read_text())}


def write_yaml_document(path: Path, name: str, content: Any) -> None:
    """Write a config file."""
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def csv_documents(path: Path) -> dict[str, Any]:
    """Read the header and the first row of a manifest."""
    lines = path.read_text().splitlines()
    return {"header": lines[0].split(","), "row": lines[1].split(",")}


def write_csv_document(path: Path, name: str, content: Any) -> None:
    """Write the header or the first row of a manifest."""
    lines = path.read_text().splitlines()
    lines[0 if name == "header" else 1] = ",".join(content)
    path.write_text("\n".join(lines) + "\n")


def jsonl_documents(folder: Path) -> dict[str, Any]:
    """Read the JSON documents of a sweep folder: its data, and the config of its first run."""
    documents: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.json")):
        if path.name in ("data.json", "failure.json", "cost.json"):
            documents[str(path.relative_to(folder))] = json.loads(path.read_text())
    first = sorted((folder / "runs").iterdir())[0]
    for name, content in run_documents(first).items():
        documents[str(first.relative_to(folder) / name)] = content
    return documents


def write_sweep_document(folder: Path, name: str, content: Any) -> None:
    """Write a document of a sweep folder."""
    path = folder / name
    if path.parent == folder:
        path.write_text(json.dumps(content))
    else:
        write_run_document(path.parent, path.name, content)


class StoppedError(Exception):
    """Interrupts a training."""


def _stop(_: Any) -> None:
    raise StoppedError


def written(root: Path) -> list[Kind]:
    """Write one file of each kind, with the calls that read it."""
    manifest = aadml.sample_data(root / "clips", clips=60, seconds=0.5)
    features = root / "features.h5"
    aadml.extract(manifest, features, workers=1)
    sound = str(sorted((root / "clips" / "clips").glob("*.mp4"))[0])
    model = aadml.fit(features, settings=SMALL, runs=root / "runs")
    run = root / "run"
    shutil.move(model.folder, run)
    aadml.audit(run)
    (root / "model").mkdir()
    aadml.load(run).save(root / "model")
    with suppress(StoppedError):
        aadml.fit(features, settings=SMALL, runs=root / "stopped", on_epoch=_stop)
    shutil.move(next((root / "stopped").iterdir()), root / "interrupted")
    aadml.embed(run, features, root / "embeddings.h5")
    indexes = root / "indexes"  # in a separate folder, so that indexes contain absolute paths and can be copied
    indexes.mkdir()
    Index.build(features, indexes / "plain.index").close()
    Index.build(features, indexes / "model.index", model=root / "model").close()
    config = root / "config.yaml"
    shutil.copy(run / "config.yaml", config)
    over = {"loss.margin": [0.5, 1.0]}
    aadml.ablate(data=features, over=over, seeds=1, workers=0, settings=SMALL, output=root / "sweep")
    vector = np.zeros(128, np.float32)

    def embed_media(place: Path, out: Path) -> object:
        return aadml.load(place).embed(audio=sound)

    run_calls: dict[str, Call] = {
        "embed": command("embed", "{file}", features, "-o", "{out}/e.h5"),
        "evaluate --data": command("evaluate", "{file}", "--data", features, "--json"),
        "audit --data": command("audit", "{file}", "--data", features),
        "report --data": command("report", "{file}", "--data", features, "-o", "{out}/r.html"),
        "index --model": command("index", features, "-o", "{out}/i.index", "--model", "{file}"),
        "verify": command("verify", "{file}"),
        "load().embed(audio=path)": embed_media,
    }
    whole_run = {
        **run_calls,
        "evaluate": command("evaluate", "{file}", "--json"),
        "report": command("report", "{file}", "-o", "{out}/r.html"),
        "train --resume": command("train", "--resume", "{file}"),
        "resume()": lambda place, out: aadml.resume(place),
    }
    searches: dict[str, Call] = {
        "search --audio": command("search", "{file}", "--audio", sound, "--to", "audio"),
        "search --export": command("search", "{file}", "--export", "{out}/x"),
        "index (update)": command("index", features, "-o", "{file}"),
        "Index.search": lambda place, out: Index(place).search(audio=vector, to="audio"),
        "Index.update": lambda place, out: Index(place).update(),
    }
    configs: dict[str, Call] = {
        "train --config": command("train", "--data", features, "--config", "{file}", "--runs", "{out}"),
        "ablate --config": command(
            "ablate", "--data", features, "--config", "{file}", "--over", "proxy.k=1", "--seeds", "1", "--workers", "0",
            "-o", "{out}/a",
        ),
        "compare --config": command(
            "compare", "--data", features, "--losses", "triplet", "--no-controls", "--config", "{file}", "--seeds", "1",
            "--workers", "0", "-o", "{out}/c",
        ),
        "fit(config=...)": lambda place, out: aadml.fit(features, config=place),
    }  # fmt: skip
    data: dict[str, Call] = {
        "inspect": command("inspect", "{file}"),
        "convert": command("convert", "{file}", "{out}/c.h5"),
        "train": command(
            "train", "--data", "{file}", "--runs", "{out}", *(f"--set={key}={value}" for key, value in SMALL.items())
        ),
        "embed": command("embed", run, "{file}", "-o", "{out}/e.h5"),
        "evaluate --data": command("evaluate", run, "--data", "{file}"),
        "index + search": lambda place, out: (
            Index.build(place, out / "i.index").close(),
            aadml_search(out / "i.index", sound),
        ),
        "status": command("status", "{file}"),
        "read()": lambda place, out: aadml.read(place),
        "extract (continue)": command("extract", manifest, "-o", "{file}"),
    }
    sweeps: dict[str, Call] = {
        "ablate (again)": command(
            "ablate", "--data", features, "--over", "loss.margin=0.5,1.0", "--seeds", "1", "--workers", "0", "-o",
            "{file}", *(f"--set={key}={value}" for key, value in SMALL.items()),
        ),
    }  # fmt: skip
    manifests: dict[str, Call] = {
        "extract": command("extract", "{file}", "-o", "{out}/f.h5", "--workers", "1"),
        "manifest": command("manifest", "{file}", "-o", "{out}/m.csv"),
        "index": command("index", "{file}", "-o", "{out}/i.index", "--workers", "1"),
    }
    embeddings: dict[str, Call] = {
        "evaluate --embeddings": command("evaluate", "--embeddings", "{file}"),
        "inspect": command("inspect", "{file}"),
    }
    return [
        Kind("model", root / "model", run_documents, write_run_document, run_calls),
        Kind("finished run", run, run_documents, write_run_document, whole_run),
        Kind(
            "interrupted run", root / "interrupted", run_documents, write_run_document,
            {name: whole_run[name] for name in ("train --resume", "resume()", "verify")},
        ),
        Kind("config", config, yaml_documents, write_yaml_document, configs),
        Kind("feature file", features, hdf5_documents, write_hdf5_document, data),
        Kind("embeddings", root / "embeddings.h5", hdf5_documents, write_hdf5_document, embeddings),
        Kind("index of features", indexes / "plain.index", index_documents, write_index_document, searches),
        Kind("index of a model", indexes / "model.index", index_documents, write_index_document, searches),
        Kind("sweep", root / "sweep", jsonl_documents, write_sweep_document, sweeps),
        Kind("manifest", manifest, csv_documents, write_csv_document, manifests),
    ]  # fmt: skip


def aadml_search(index: Path, sound: str) -> object:
    """Search an index by a sound."""
    with Index(index) as opened:
        return opened.search(audio=sound, to="audio")


class Soak:
    """Plants modules and makes all calls.

    Args:
        root: an empty folder.
        seed: seed of the draws.
        share: share of (string, call) pairs that are tried.
        all_places: whether modules are planted in every folder in turn instead of a drawn one.
    """

    def __init__(self, root: Path, seed: int, share: float, *, all_places: bool = False) -> None:
        torch.set_num_threads(1)
        self._all_places = all_places
        self.tally, self._root, self._random, self._share = Tally(), root, Random(seed), share
        self._current, installed = root / "current", root / "installed"
        for folder, where in ((self._current, "current"), (installed, "installed")):
            folder.mkdir()
            (folder / f"planted_{where}.py").write_text(MODULE)
        sys.path.append(str(installed))
        self._path = [*sys.path]
        self._notes = root / "notes"
        os.environ[NOTES] = str(self._notes)
        self.kinds = written(root / "written")
        os.chdir(self._current)

    def run(self) -> None:
        """Try every string of every kind of file."""
        for kind in self.kinds:
            print(f"{kind.name}: {len(kind.calls)} calls of each string", file=sys.stderr, flush=True)
            for name, content in kind.read(kind.source).items():
                for path in strings_in(content):
                    self.tally.strings[kind.name] += 1
                    self._try(kind, name, content, path)

    def _try(self, kind: Kind, name: str, content: Any, path: Path_) -> None:
        for call in kind.calls:
            if self._random.random() >= self._share:
                continue
            others = [self._random.choice(SHAPES)] if self._random.random() < _OFTEN else []
            places_tried = PLANTED if self._all_places else [self._random.choice(PLANTED)]
            for where, shape in product(places_tried, ["{}", *others]):
                text = shape.format(f"planted_{where}:f")
                changed = replaced(content, path, text)
                address = f"{kind.name}: {name} {'.'.join(map(str, path))} = {text}: {call}"
                imported = self._called(kind, name, changed, call, address, trusted=False)
                if imported:
                    self.tally.failures.append(f"{address}: imported without consent")
                if imported is not None:
                    continue
                if self._called(kind, name, changed, call, address, trusted=True):
                    self.tally.consented[kind.name, call] += 1
                elif where == "beside":  # modules are searched next to data, not next to a model, run or config
                    self.tally.not_searched += 1
                else:
                    self.tally.failures.append(f"{address}: not imported with consent")

    def _called(self, kind: Kind, name: str, content: Any, call: str, address: str, *, trusted: bool) -> bool | None:
        """Make a call with a changed copy; return whether a planted module was imported, None if it was refused."""
        _forget(self._path)
        self._notes.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=self._root) as folder:
            place = _copied(kind.source, Path(folder) / "file")
            (place.parent / "planted_beside.py").write_text(MODULE)
            out = Path(folder) / "out"
            out.mkdir()
            kind.write(place, name, content)
            outcome = self._outcome(kind.calls[call], place, out, address, trusted=trusted)
        imported = self._notes.exists() or any(module.startswith("planted_") for module in sys.modules)
        if not trusted:
            self.tally.calls[kind.name] += 1
            self.tally.outcomes[kind.name, call, outcome] += 1
            if sys.path != self._path:
                self.tally.failures.append(f"{address}: a folder entered sys.path without consent")
        return None if outcome == "consent asked" else imported

    def _outcome(self, call: Call, place: Path, out: Path, address: str, *, trusted: bool) -> str:
        silent = io.StringIO()
        try:
            with redirect_stdout(silent), redirect_stderr(silent), consent.trusting(trusted):
                call(place, out)
        except consent.UntrustedCodeError as error:
            message = str(error)
            complete = "planted_" in message and "--trust-code" in message and str(place.parents[1]) in message
            if not trusted and (not complete or "\n" in message):
                self.tally.failures.append(f"{address}: the refusal lacks the name, the file or the consent: {message}")
            return "consent asked"
        except (InputError, click.ClickException, click.exceptions.Exit):
            return "refused"
        except SystemExit:
            return "exit"
        except Exception as error:
            return f"{type(error).__name__}"
        return "worked"


def _forget(path: Sequence[str]) -> None:
    """Remove planted modules, consent and folders of the previous call."""
    for module in [module for module in sys.modules if module.startswith("planted_")]:
        del sys.modules[module]
    consent._names.clear()
    consent.folders.clear()
    import_paths._beside.clear()
    sys.path[:] = path


def _copied(source: Path, place: Path) -> Path:
    place.mkdir(parents=True)
    target = place / source.name
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)
        for beside in source.parent.glob(f"{source.name}.*"):
            (shutil.copytree if beside.is_dir() else shutil.copy)(beside, place / beside.name)
        if source.suffix == ".csv":
            shutil.copytree(source.parent / "clips", place / "clips")
    return target


def page(soak: Soak, seed: int, share: float, seconds: float) -> str:
    """Return the results as Markdown."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    tally = soak.tally
    calls = sum(tally.calls.values())
    lines = [
        "# Names planted in the metadata of files",
        "",
        f"Written by `scripts/soak/trust.py --seed {seed} --share {share:g}` at commit {commit.stdout.strip()}, "
        f"{seconds / 60:.0f} minutes.",
        "",
        f"{sum(tally.strings.values())} strings, {sum(len(kind.calls) for kind in soak.kinds)} commands and functions, "
        f"{calls} calls without consent: {len(tally.failures)} failures (an import, or a folder in `sys.path`). "
        f"With consent {sum(tally.consented.values())} calls that had been refused imported the module, and "
        f"{tally.not_searched} did not find it: it lay beside a model, run or config, where no module is searched.",
        "",
        "| file | strings | calls | consent asked | imported with consent |",
        "|---|---|---|---|---|",
    ]
    for name in tally.strings:
        asked = sum(n for (kind, _, word), n in tally.outcomes.items() if (kind, word) == (name, "consent asked"))
        with_consent = sum(count for (kind, _), count in tally.consented.items() if kind == name)
        lines.append(f"| {name} | {tally.strings[name]} | {tally.calls[name]} | {asked} | {with_consent} |")
    lines += ["", "| file | call | outcomes |", "|---|---|---|"]
    for name, call in dict.fromkeys((kind, call) for kind, call, _ in tally.outcomes):
        words = {word: n for (kind, one, word), n in sorted(tally.outcomes.items()) if (kind, one) == (name, call)}
        lines.append(f"| {name} | {call} | {', '.join(f'{word} {n}' for word, n in words.items())} |")
    lines += ["", *(f"- {failure}" for failure in tally.failures[:50])]
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak; return 1 on a failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--all-places", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    output = options.output.absolute() if options.output else None
    here = Path.cwd()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "soak").mkdir()
        soak = Soak(Path(folder) / "soak", options.seed, options.share, all_places=options.all_places)
        soak.run()
        os.chdir(here)
    text = page(soak, options.seed, options.share, time.monotonic() - start)
    print(text)
    if output:
        output.write_text(text)
    return 1 if soak.tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
