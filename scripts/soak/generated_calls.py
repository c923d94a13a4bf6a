"""Run generated command lines and Python calls; none may end in a traceback or leave files behind.

Every command of the command line is drawn with valid values and with wrong ones: files that are missing, empty,
truncated, unreadable or of another kind, and folders; numbers that are huge, negative or not numbers; unknown names,
zero bytes (in Python), repeated options. Commands, options, entries of registries and config keys are read from the
code. `demo` is drawn seldom, and the port of `serve` is in use. Calls of the public functions and methods are Python
expressions, drawn alike. Each entry runs in a new folder with fresh copies of small files, in a process of the user who
starts the script. Root starts a second process as another user.

A command may end with status 0, 1, 2 or 130; the last is allowed only at the time limit. A call may raise an error of
aadml. Not counted are Python's own TypeError of a signature that does not accept the arguments, errors of a function of
the user (`OWN`), and after the time limit KeyboardInterrupt and errors raised inside of a package. Anything else is a
traceback. After status 2 and after an error no path may be new or missing, except paths that the command printed, and
the folder of a study without a finished run, which contains the reasons. Temporary files may not remain.
Entry number i of a seed is the same for every user, and `--only i` repeats it. The report is written every ten seconds
with the entries so far, and once more when the script is stopped (Ctrl-C or SIGTERM).

Usage: PYTHONPATH=. nice -n 10 python scripts/soak/generated_calls.py [--seed 0] [-o docs/lab/soak/generated_calls.md]
"""

import faulthandler
import inspect
import io
import json
import os
import pwd
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import click

import aadml  # imports its modules when they are used
from aadml.feature_extraction.ground.atomic import write_bytes

SELDOM = {"demo": 0.1}
"""Weight of a command that is drawn less often than others: `demo` ends at the time limit."""
PORT = 18765
"""Port that is in use, so that `serve` ends before it would listen."""
SMALL = ("network.hidden=[8]", "training.batch=20", "proxy.k=1")
LIMIT = 8.0
"""Processor seconds of one entry, after which the entry is interrupted as by Ctrl-C."""
WAITING = 5.0
"""Wall-clock seconds per processor second of the limit, after which the entry is also interrupted."""
OTHER_USER = "nobody"
DONE = ("0", "1", "3", "returned")
OF_SIGNATURE, OF_USER = "TypeError of the signature", "error of the user's function"
ENTRY = "<entry>"
"""File name of the expression in tracebacks."""
ROOT = Path(aadml.__file__).parents[1]
_FRAME = re.compile(r'^  File "(.+)", line \d+, in (\S+)', re.MULTILINE)
_USERS, _AADML = re.compile(rf"^{ENTRY}$|/own\.py$"), re.compile(rf"^{ROOT}/(aadml|feature_extraction)/")
_WRAPPER = re.compile(r"/ground/(argument_types|consent)\.py:call$")
"""Functions that check the arguments of a public function and call it."""
_FOLLOWED = re.compile(r"\n(During handling of the above exception|The above exception was the direct cause)")
_NOWHERE = "http://127.0.0.1:9"
"""Address of a proxy on which no process listens, so that an entry downloads nothing."""
_VERSION = f"python3.{sys.version_info.minor}"
_PYTHONS = (sys.executable, f"/usr/bin/{_VERSION}", f"/usr/local/bin/{_VERSION}")
"""Interpreters for the other user, who may have no access to that of the first; the packages are the same."""
_MEMORY, _FILE = 12 << 30, 1 << 30
"""Bytes of memory of a process, and of a file."""
_NO_RUN = " no run finished"
_TEMPORARY = re.compile(r"\.partial(\.|$)|^tmp/|\.tmp$")
_SWEEPS = ("ablate", "compare", "reproduce")

# -- values -----------------------------------------------------------------------------------------------------------

DATA = [
    "features.h5", "media.h5", "a b.h5", "größe.h5", "arrays.npz", "synthetic:ave", "table.parquet",
]  # fmt: skip
WRONG_FILES = [
    "missing.h5", "no/such/folder/x", "folder", "readonly", "empty.h5", "cut.h5", "cut.index", "cut_run",
    "unreadable.h5",
    "pipe", "loop", "-dash.h5", "text.txt", "broken.csv", "bad.yaml", "", "features.h5/under", "x\0y", "\udcff.h5",
    "x" * 300, "/proc/aadml/x", "embeddings.h5", "features.h5", "run", "plain.index", "manifest.csv", "nan", "-", "~",
    ".",
    "readonly/out.h5", "hf:unknown/set", "s3://bucket/x.parquet", "http://127.0.0.1:9/x.csv", "synthetic:x",
    "table.tsv", "table.jsonl",
]  # fmt: skip
WRONG_NUMBERS = [
    "0", "-1", "1", "7", "1.5", "1e3", "nan", "inf", "-inf", "1e-320", "1e308", "-0.0", "0x10", "1_0", " 1", "", "x",
    "१", str(2**31), str(2**63), str(10**30), "9" * 5000,
]  # fmt: skip
WRONG_TEXTS = ["", "unknown", "x\0y", "\udcff", "ü" * 3, "-x", "a,b", ",", "=", "x" * 5000, "own:dumps", "nowhere:it",
               "nan", "3", "{", "[1", "null", "\n", "legacy:", "@", "features.h5", "aa-"]  # fmt: skip
WRONG_SETTINGS = [
    "training.epochs", "training.epoch=1", "training.epochs=", "=1", "proxy.k=0", "proxy.k=1e9", "network.hidden=[0]",
    "network.hidden=8", "training.learning_rate=nan", "training.learning_rate=-1", "training.batch=1", "loss=unknown",
    "training=3", "data=missing.h5", "loss.margin=x", "a.b.c=1", "method=cca", "seed=-1", "training.patience=null",
    "network.hidden=[8", "x\0=1", "loss.margin=1e308", "inputs.scaling=unknown", "training.batch=999999999999",
]  # fmt: skip
OWN = "import json\n\n\ndef dumps(*arguments, **options):\n    return json.dumps(*arguments, **options)\n"
"""A module of the user, whose function raises its own errors."""
RUNS = ["run", "run", "model", "media_run", "stopped"]
MEDIA_SETTINGS = ["visual.frames_per_second=2", "audio.unknown=1", "audio=3", "visual.frames_per_second=nan", "x=1"]

GOOD: dict[str, list[str]] = {
    "allow_other_features": [], "allow": ["folder"], "cluster": ["label", "id"], "host": ["127.0.0.1", "localhost"],
    "root_path": ["/clips"], "token_file": ["token.txt"], "windows": ["1s"], "drop_duplicates": ["train", "test"],
    "incomplete_classes": ["keep", "drop"], "rows": ["{'audio': torch.arange(2)}"], "license_id": ["mit"],
    "audio": ["audio"], "ave": ["features.h5"], "vegas": ["features.h5"],
    "audiocaps": ["folder"],
    "clotho": ["folder"], "baseline": ["none", "triplet", "aadml"], "calibrate": ["features.h5", "media.h5"],
    "class_names": ["text.txt"], "classes": ["15", "28"], "clip": ["clip.mp4"], "clips": ["1", "2"],
    "clock_limit": ["none", "1"], "comment": ["#"],
    "columns": ["media=media", "label=label"], "config": ["config.yaml", "cca", "aadml"],
    "criterion": ["recall@3", "map"], "damaged": ["keep", "drop"], "data": DATA, "device": ["cpu", "auto", "cuda"],
    "difficulty": ["normal", "0.5"],
    "embeddings": ["embeddings.h5", "arrays.npz"], "encoder": ["own:dumps"], "engine": ["local"], "epochs": ["1", "2"],
    "export": ["vectors"], "features": ["features.h5", "features.h5", "media.h5"], "folder": ["new", "new/er"],
    "header": ["id,media,label,split"], "media_name": ["{id}.mp4"],
    "folds": ["folder"], "index": ["plain.index", "model.index", "media.index"], "k": ["1", "3"],
    "labels_separator": ["|"], "layout": ["feature-file", "columns", "flat"], "loss": ["triplet", "aa-triplet",
    "aa-dsl"],
    "losses": ["triplet", "triplet,contrastive"], "manifest": ["manifest.csv"], "max_epochs": ["1"],
    "max_seconds": ["3600", "0.1"], "media": ["manifest.csv", "clips"], "method": ["aadml", "cca", "random"],
    "methods": ["cca", "cca,random"], "metrics": ["recall@3", "map,mrr"], "modalities": ["audio,visual", "audio"],
    "model": ["run", "model", "media_run"], "name": ["triplet", "aadml", "training", "cca"], "once": ["audio"],
    "only": ["table-1", "figure-3"], "output": ["out", "new/out.h5", "out.h5"], "over": ["proxy.k=1,2",
    "loss.margin=1,2"],
    "kind": ["losses", "methods", "metrics", "sections", "configs"], "places": ["clips", "manifest.csv",
    "class-folders"],
    "port": [str(PORT)], "precision": ["0.9"], "protocol": ["inductive", "legacy:partner", "csls"], "queries": ["3"],
    "query_seed": ["1"], "recipe": ["paper"], "relevance": ["label", "own"], "resume": ["stopped", "run"], "run": RUNS,
    "runs": ["runs"], "seconds": ["0.5"], "seed": ["1"], "seeds": ["1"], "settings": [], "shard": ["0/2", "1/2"],
    "shards": ["media.0-of-2.h5", "media.1-of-2.h5"], "shell": ["true", "exit 3", "cp {input} {output}",
    "echo {input}"],
    "similarity": ["cosine", "dot"], "source": ["features.h5", "manifest.csv", "media.h5"], "split": ["test", "train"],
    "split_by": ["label"], "target": ["out.h5"], "test": ["0.2"], "test_fold": ["1"], "text": ["text"],
    "time_limit": ["60"], "to": ["audio", "visual"], "train_command": ["cp {train} {output}"],
    "trials": ["1"], "valid": ["0.1"], "view": ["audio=visual"],
    "views": ["audio=visual"], "visual": ["visual"], "weights": ["untrained"], "action": ["list", "verify"],
    "track": ["trackio", "wandb"], "mteb": ["plain"], "revision": ["main"],
    "where": ["label = 'c0'",
    "split IS NULL"],
    "workers": ["1"], "path": [*RUNS, "plain.index", "features.h5"], "paper": ["paper", "mei"],
}  # fmt: skip
"""Parameter -> values that often fit."""
OF_COMMANDS: dict[tuple[str, str], list[str]] = {
    ("search", "audio"): ["clip.mp4", "tone.wav"], ("search", "visual"): ["clip.mp4", "picture.png"],
    ("search", "text"): ["a dog"], ("index", "precision"): ["0.9", "0.5"], ("evaluate", "precision"): ["float32"],
    ("extract", "audio"): ["log-mel"], ("extract", "visual"): ["hog-color"], ("index", "audio"): ["log-mel"],
    ("index", "visual"): ["hog-color"], ("extract", "text"): ["hf:unknown"], ("index", "output"): ["new.index",
    "plain.index"],
    ("manifest", "split"): ["random:0.7/0.1/0.2"], ("convert", "split"): ["random:0.7/0.1/0.2"],
    ("inspect", "path"): DATA, ("convert", "source"): DATA, ("status", "output"): ["media.h5", "part.h5"],
    ("merge", "output"): ["media.h5", "merged.h5"], ("extract", "output"): ["out.h5", "media.h5"],
    ("report", "runs"): RUNS, ("evaluate", "data"): DATA, ("audit", "data"): ["features.h5"],
    ("ablate", "output"): ["sweep", "out"], ("report", "output"): ["page.html"], ("extract", "shard"): ["0/2", "0/1"],
    ("extract", "windows"): ["1s", "1s/0.5s"],
    ("manifest", "output"): ["out.csv"], ("search", "model"): ["model", "media_run"],
    ("export", "output"): ["head.pt2"],
    ("weights", "name"): ["vggish", "paper-pca", "hf:unknown"], ("weights", "folder"): ["folder", "clips"],
}  # fmt: skip


KINDS = {
    "loss": "losses", "losses": "losses", "method": "methods", "methods": "methods", "metrics": "metrics",
    "protocol": "protocols",
}  # fmt: skip
"""Parameter -> registry of its values."""


@cache
def registered(parameter: str) -> list[str]:
    """Return the names of a registry for a parameter."""
    from aadml.configuration.catalog import listing
    from aadml.data.layouts import LAYOUTS

    if parameter == "layout":
        return [*LAYOUTS]
    return [entry.name for entry in listing(KINDS[parameter])] if parameter in KINDS else []


@cache
def key_values() -> list[str]:
    """Return KEY=VALUE of every config key, with its default and with values that are seldom valid."""
    from aadml.configuration.catalog import SECTIONS, options

    keys = {
        option.name if name == "general" else f"{name}.{option.name}": option.default
        for name in SECTIONS
        for option in options("sections", name)
    }
    short = [value for value in [*WRONG_NUMBERS, *WRONG_TEXTS] if len(value) < 50 and "\0" not in value]
    return [f"{key}={value}" for key, default in keys.items() for value in [json.dumps(default, default=str), *short]]


def values(command: str, parameter: click.Parameter) -> tuple[list[str], list[str]]:
    """Return the values of a parameter that are often valid, and those that are seldom valid."""
    name = str(parameter.name)
    good = OF_COMMANDS.get((command, name), GOOD.get(name, []) * 3 + registered(name))
    if name == "options":
        return MEDIA_SETTINGS[:1], MEDIA_SETTINGS[1:]
    if name == "settings":
        return [*SMALL], WRONG_SETTINGS * 20 + key_values()
    if isinstance(parameter.type, click.Choice):
        return [*map(str, parameter.type.choices)], WRONG_TEXTS
    if isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType):
        return good, WRONG_NUMBERS
    of_files = isinstance(parameter.type, click.Path) or name in ("data", "config")
    return good, WRONG_FILES if of_files else WRONG_TEXTS


def command_line(random: Random) -> list[str]:
    """Draw the words of a command line, without `aadml`."""
    from aadml.cli import COMMANDS, cli

    context = click.Context(cli)
    name = random.choices([*COMMANDS], [SELDOM.get(name, 1.0) for name in COMMANDS])[0]
    if random.random() < 0.01:
        return [random.choice([*WRONG_TEXTS, "--help", "--version", "trian"]), *random.choices(WRONG_TEXTS, k=2)]
    command = cli.get_command(context, name)
    assert command is not None
    share_wrong = random.choice([0.0, 0.0, 0.1, 0.3])
    words, required = [], []
    for parameter in command.params:
        wanted = 0.97 if parameter.required else 0.4 if isinstance(parameter, click.Argument) else 0.12
        if random.random() < wanted:
            (required if isinstance(parameter, click.Argument) else words).extend(
                _typed(name, parameter, share_wrong, random)
            )
    words += required if random.random() < 0.98 else [*required, random.choice(WRONG_FILES)]
    if share_wrong and random.random() < 0.04:
        words.insert(
            random.randrange(len(words) + 1), random.choice(["--unknown", "-x", "--help", "--", "--data", "-o"])
        )
    if name == "sample-data" and random.random() < 0.99:
        words = ["--clips", "1", "--seconds", "0.5", "--workers", "1", *words]
    if name in ("train", *_SWEEPS) and random.random() < 0.99:
        words = [*_small(name, random), *words]
    return [name, *(["--port", str(PORT)] if name == "serve" else []), *words]


def _typed(command: str, parameter: click.Parameter, share_wrong: float, random: Random) -> list[str]:
    """Draw the words of one parameter, sometimes repeated."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return [random.choice([*parameter.opts, *parameter.secondary_opts])]
    good, wrong = values(command, parameter)
    wrong = [value for value in wrong if "\0" not in value]  # no system passes a zero byte to a program
    count = random.choice([1, 1, 1, 2]) if parameter.multiple or parameter.nargs == -1 or random.random() < 0.02 else 1
    words = []
    for _ in range(count):
        value = random.choice(wrong if not good or random.random() < share_wrong else good)
        words += [random.choice(parameter.opts), value] if isinstance(parameter, click.Option) else [value]
    return words


def _small(command: str, random: Random) -> list[str]:
    """Return options that make a training take milliseconds; later options of the same name win."""
    words = [word for setting in SMALL for word in ("--set", setting)]
    words += [] if command == "reproduce" else ["--data", "features.h5"]
    words += ["--epochs" if command == "train" else "--max-epochs", "1"]
    words += [] if command == "train" else ["--seeds", "1", "--workers", "0"]
    if command == "compare":
        words += random.choice([["--losses", "triplet"], ["--methods", "cca"]])
    return words


ANYTHING = [
    "None", "True", "0", "1", "-1", "3", "2.5", "nan", "inf", "10**30", "-2**63", "1e308", "1j", "''", "'unknown'",
    "'x\\0y'",
    "'\\udcff'", "b'x'", "b''", "[]", "()", "{}", "[1, 'a']", "['a']", "{'a': 1}", "{1: nan}",
    "{'network.hidden': [8]}",
    "set()", "object()", "print", "range(3)", "np.int64(2)", "np.float32('nan')", "np.bool_(True)",
    "np.str_('audio')",
    "np.array('audio')", "np.zeros((0, 6))", "np.zeros((2, 6))", "np.full((2, 6), nan)", "np.zeros((2, 6), complex)",
    "np.array([['a']])", "np.zeros(6)", "torch.zeros(2, 6)", "torch.zeros(0)", "torch.zeros(2, 6, dtype=torch.int64)",
    "Path('features.h5')", "Path('missing')", "Path('folder')", "splits()", "clips()", "model()", "iter([1])",
    "Ellipsis",
    "'own:dumps'", "datetime.date(2020, 1, 1)", "Decimal('1')", "Fraction(1, 3)", "float('-inf')", "'9' * 5000",
]  # fmt: skip
MATRICES = ["np.zeros((2, 6))", "np.ones((3, 6), np.float32)", "torch.ones(2, 6)", "[[1, 2, 3, 4, 5, 6]]", "np.ones(6)",
            "np.ones((2, 8))", "np.ones((2, 3), np.float16)"]  # fmt: skip
FITTING: dict[str, list[str]] = {
    "settings": ["{'network.hidden': [8], 'training.batch': 20}", "['network.hidden=[8]']",
    "{'network': {'hidden': [8]}}"],
    "model": ["'run'", "model()", "'model'"], "data": ["'features.h5'", "splits()", "clips()"], "train": ["clips()"],
    "metrics": ["'map'", "['recall@3', 'mrr']"], "modalities": ["'audio,visual'", "['audio', 'visual']"],
    "modality": ["'audio'", "'visual'"], "over": ["{'proxy.k': [1, 2]}", "['loss.margin=1,2']"], "k": ["1", "2"],
    "embeddings": ["'embeddings.h5'", "model().embed_clips(clips())"], "source": ["'features.h5'", "'media.h5'"],
    "audio": MATRICES, "visual": MATRICES, "a": MATRICES, "b": MATRICES, "queries": MATRICES, "gallery": MATRICES,
    "labels": ["['a', 'b']", "np.arange(2)", "torch.arange(2)", "None"], "ids": ["['x', 'y']", "[1, 2]"],
    "features": ["{'audio': torch.ones(2, 6)}", "'features.h5'", "torch.ones(2, 6)"], "clips": ["clips()"],
    "valid": ["clips()"], "test": ["clips()"], "index": ["torch.arange(2)", "[0, 1]"], "number": ["0", "1"],
    "vectors": ["{'audio': torch.ones(1, 6)}", "{'audio': torch.ones(60, 6)}"], "paths": ["['media.0-of-2.h5']"],
    "shard": ["(0, 1)", "'0/2'", "(0, 2)"],
    "options": ["{'visual': {'frames_per_second': 2.0}}", "{}", "'media=media'", "15"],
    "encoder": ["lambda features, labels: features"], "views": ["{'audio': 'visual'}", "['audio=visual']"],
    "present": ["{'audio': [True, False]}"], "class_names": ["('a', 'b')"], "parameters": ["(1,)", "['a']"],
    "confirm": ["print"], "progress": ["print"], "on_note": ["print"], "on_run": ["print"],
    "on_plan": ["print"], "on_epoch": ["print"], "on_step": ["print"], "on_warning": ["print"],
    "on_unverified": ["print"],
    "command": ["'true'", "'make'"], "provenance": ["{}"], "notes": ["('a',)"], "name": ["'a'"],
    "choices": ["1", "True", "0.5"],
    "items": MATRICES,
}  # fmt: skip
"""Argument -> expressions that often fit; others are drawn from `GOOD`."""
FREE_NAMES = {
    "choices": ["workers", "moments", "precision", "media"],
    "options": ["columns", "classes", "valid", "folds"],
}
"""`**arguments` -> names that are drawn for them; those of features are modalities."""
OBJECTS = {"Clips": "clips()", "Splits": "splits()", "Model": "model()", "Index": "index()"}
FIXED = {  # arguments that keep a call short; other expressions for the same argument replace these
    "fit": {"epochs": "1", "settings": FITTING["settings"][0], "data": "'features.h5'"},
    "ablate": {"data": "'features.h5'", "seeds": "1", "workers": "0", "max_epochs": "1",
    "settings": FITTING["settings"][0]},
    "compare": {"data": "'features.h5'", "seeds": "1", "workers": "0", "max_epochs": "1", "losses": "'triplet'",
                "settings": FITTING["settings"][0], "with_controls": "False"},
    "reproduce": {"seeds": "1", "workers": "0", "max_epochs": "1"},
    "extract": {"workers": "1"}, "index": {"workers": "1"}, "Index.build": {"workers": "1"},
    "sample_data": {"clips": "1", "seconds": "0.5", "workers": "1"}, "serve": {"port": str(PORT)},
}  # fmt: skip
CALLS_LEFT_OUT = {
    **dict.fromkeys((name for name in aadml.__all__ if name.endswith("Error")), "is raised by aadml only"),
    **dict.fromkeys(("Clips", "Splits", "Model"), "is built by `Clips.of`, `read`, `fit` and `load`"),
    "Model.embed_features": "leaves the checks to its caller",
}
ARGUMENTS_LEFT_OUT = ("work",)
"""Functions of aadml that a caller may replace."""  # fmt: skip


def _readers() -> dict[str, Callable[..., Any]]:
    """Return the functions of `feature_extraction` that read a user's file; the rest of its face is in `aadml`."""
    from aadml.feature_extraction import manifest
    from aadml.feature_extraction.feature_file import reading

    return {
        "reading.is_feature_file": reading.is_feature_file,
        "reading.read_features": reading.read_features,
        "manifest.read_manifest": manifest.read_manifest,
    }


def public() -> dict[str, tuple[str, inspect.Signature]]:
    """Return the functions, methods and properties to call: name -> (expression of the callee, signature)."""
    callees = {}
    for name in sorted(set(aadml.__all__) - {*CALLS_LEFT_OUT} | {*OBJECTS}):
        entry = getattr(aadml, name)
        if not callable(entry):
            continue
        callees[name] = (f"aadml.{name}", inspect.signature(entry))
        for part in dir(entry) if isinstance(entry, type) else ():
            method = inspect.getattr_static(entry, part)
            if part.startswith("_") or not (callable(method) or isinstance(method, classmethod | staticmethod)):
                continue
            of_class = isinstance(method, classmethod | staticmethod)
            signature = inspect.signature(getattr(entry, part))
            if not of_class:
                signature = signature.replace(parameters=[*signature.parameters.values()][1:])
            callees[f"{name}.{part}"] = (f"{f'aadml.{name}' if of_class else OBJECTS[name]}.{part}", signature)
    callees |= {name: (name, inspect.signature(reader)) for name, reader in _readers().items()}
    return {name: callee for name, callee in callees.items() if name not in CALLS_LEFT_OUT}


def python_call(random: Random, callees: Mapping[str, tuple[str, inspect.Signature]]) -> tuple[str, str]:
    """Draw a call: its name and the expression."""
    name = random.choice([*callees])
    callee, signature = callees[name]
    if name in _readers():  # their arguments are typed; aadml checks those of its public functions
        path = repr(random.choice(WRONG_FILES + DATA))
        return name, f"{callee}({random.choice([path, f'Path({path})'])})"
    share_wrong = random.choice([0.0, 0.1, 0.3, 0.6])
    drawn: dict[str, str] = {**FIXED.get(name, {})} if random.random() < 0.97 else {}
    several: list[str] = []
    for parameter in signature.parameters.values():
        optional = parameter.default is not parameter.empty
        kind = parameter.kind
        if kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            for _ in range(random.choice([1, 1, 2])):
                value = _expression(parameter, share_wrong, random)
                if kind is parameter.VAR_POSITIONAL:
                    several.append(value)
                else:
                    drawn[random.choice(FREE_NAMES.get(parameter.name, ["audio", "visual", "text"]))] = value
        elif parameter.name not in ARGUMENTS_LEFT_OUT and random.random() < (0.15 if optional else 0.98):
            drawn[parameter.name] = _expression(parameter, share_wrong, random)
    if random.random() < 0.02:
        drawn["unknown"] = "1"
    arguments = [*several, *(f"{key}={value}" for key, value in drawn.items() if key != "self")]
    leading = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not several and leading and leading[0].name in drawn and random.random() < 0.5:
        first = leading[0].name
        arguments = [drawn[first], *(f"{key}={value}" for key, value in drawn.items() if key != first)]
    return name, f"{callee}({', '.join(arguments)})"


def _expression(parameter: inspect.Parameter, share_wrong: float, random: Random) -> str:
    """Draw an expression for an argument."""
    argument = parameter.name
    if argument == "settings" and random.random() < share_wrong:
        return repr([random.choice(key_values())])
    fitting = FITTING.get(argument) or [_quoted(value) for value in GOOD.get(argument, []) * 3 + registered(argument)]
    if not fitting and isinstance(parameter.default, bool | int | float):
        fitting = ["True", "False"] if isinstance(parameter.default, bool) else [repr(parameter.default)]
    if not fitting or random.random() < share_wrong:
        return random.choice([*ANYTHING, *map(repr, WRONG_FILES)])
    return random.choice(fitting)


def _quoted(value: str) -> str:
    return value if re.fullmatch(r"\d+(\.\d+)?", value) else repr(value)


# -- files ------------------------------------------------------------------------------------------------------------


def write_files(folder: Path) -> None:
    """Write a small file of each kind into an empty folder."""
    import cv2
    import numpy as np

    from aadml.data.synthetic import synthetic
    from aadml.feature_extraction.feature_file.writing import write_features
    from aadml.search.index import Index

    clips = folder / "clips"
    aadml.sample_data(clips, clips=12, seconds=0.5, workers=1)
    media = sorted((clips / "clips").glob("*.mp4"))
    manifest = folder / "manifest.csv"
    splits = ["train"] * 6 + ["valid"] * 2 + ["test"] * 4
    rows = [f"{path.stem},{path},c{i % 2},{split}" for i, (path, split) in enumerate(zip(media, splits, strict=True))]
    manifest.write_text("\n".join(["id,media,label,split", *rows]) + "\n")
    shutil.copy(media[0], folder / "clip.mp4")
    cv2.imwrite(str(folder / "picture.png"), np.zeros((32, 32, 3), np.uint8))
    features = folder / "features.h5"
    write_features(features, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))
    for name in ("a b.h5", "größe.h5", "-dash.h5"):
        shutil.copy(features, folder / name)
    _write_tables(folder)
    aadml.extract(manifest, folder / "media.h5", workers=1)
    for shard in range(2):
        aadml.extract(manifest, folder / "media.h5", workers=1, shard=(shard, 2))
    np.savez(folder / "arrays.npz", audio=np.eye(6), visual=np.ones((6, 3)), label=np.arange(6) % 2)
    settings = [*SMALL]
    for name, data in (("run", features), ("media_run", folder / "media.h5")):
        run = aadml.fit(data, settings=settings, epochs=1, runs=folder / "runs")
        shutil.move(str(run.folder), folder / name)
    aadml.load(folder / "run").save(folder / "model")
    with suppress(KeyboardInterrupt):
        aadml.fit(features, settings=settings, epochs=2, runs=folder / "runs", on_epoch=_interrupt)
    shutil.move(next((folder / "runs").iterdir()), folder / "stopped")
    (folder / "runs").rmdir()
    shutil.copy(folder / "run" / "config.yaml", folder / "config.yaml")
    aadml.embed(folder / "run", features, folder / "embeddings.h5")
    Index.build(features, folder / "plain.index").close()
    Index.build(features, folder / "model.index", model=folder / "model").close()
    Index.build(folder / "media.h5", folder / "media.index", media=manifest).close()
    aadml.ablate(
        {"loss.margin": [0.5]},
        data=features,
        seeds=1,
        workers=0,
        max_epochs=1,
        settings=settings,
        output=folder / "sweep",
    )
    for whole, cut in (("features.h5", "cut.h5"), ("plain.index", "cut.index")):
        content = (folder / whole).read_bytes()
        (folder / cut).write_bytes(content[: len(content) * 3 // 5])
    shutil.copytree(folder / "run", folder / "cut_run")
    (folder / "cut_run" / "model.safetensors").write_bytes(b"")
    (folder / "folder").mkdir()
    for name, content in {
        "folder/thesis.tex": "Once upon a time", "empty.h5": "", "text.txt": "c0\nc1\nc2\n",
        "broken.csv": "id,media\nx", "bad.yaml": "{", "own.py": OWN, "token.txt": "0123456789abcdef" * 3,
    }.items():  # fmt: skip
        (folder / name).write_text(content)


def _write_tables(folder: Path) -> None:
    """Write a table of features in each format."""
    import pyarrow
    from pyarrow import parquet

    rows = [
        {"id": f"t{i}", "label": f"c{i % 2}", "split": split, "audio": [i, 1.0, i % 2], "visual": [i % 2, 1.0, i]}
        for i, split in enumerate(["train"] * 8 + ["valid"] * 4 + ["test"] * 4)
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "table.parquet")
    (folder / "table.jsonl").write_text("\n".join(map(json.dumps, rows)))
    lines = ["\t".join(map(str, row.values())) for row in rows]
    (folder / "table.tsv").write_text("\n".join(["\t".join(rows[0]), *lines]))


def _interrupt(_: object) -> None:
    raise KeyboardInterrupt


def copy_files(source: Path, folder: Path) -> None:
    """Copy the files, and make those that cannot be copied.

    A feature file is never changed in place, so its copy is a link, which is inspected once in a process.
    """
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("clips"), copy_function=_copy)
    (folder / "clips").symlink_to(source / "clips")
    (folder / "unreadable.h5").touch(mode=0)
    (folder / "readonly").mkdir(mode=0o555)
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    for name in ("tmp", "home"):
        (folder / name).mkdir()


def _copy(source: str, target: str) -> None:
    (os.link if source.endswith(".h5") else shutil.copy2)(source, target)


def listing(folder: Path) -> set[str]:
    """Return every path below a folder, without the caches in the home folder."""
    return {
        str((Path(root) / name).relative_to(folder))
        for root, folders, files in os.walk(folder)
        for name in [*folders, *files]
        if not root.startswith(str(folder / "home"))
    }


# -- one entry --------------------------------------------------------------------------------------------------------


@dataclass
class Entry:
    """Result of one command line or Python call.

    Attributes:
        number: number of the entry; the first entries are command lines.
        text: the command line or the expression.
        command: the command, or the called function.
        outcome: exit status or class of the error; "returned", "traceback", "died" or "time limit".
        detail: the traceback, or the last line of the message.
        left: new, missing and temporary paths that are not allowed.
        seconds: wall-clock time.
    """

    number: int
    text: str
    command: str
    outcome: str = ""
    detail: str = ""
    left: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the result is not allowed."""
        return self.outcome in ("traceback", "died") or bool(self.left)


class Generator:
    """Draws and runs entries in this process, which must be able to change its folder and its output.

    Args:
        root: an empty folder.
        seed: seed of the draws.
        lines: number of command lines; further entries are Python calls.
        files: folder of `write_files`; None writes a new folder.
        limit: processor seconds of one entry.
    """

    def __init__(self, root: Path, seed: int, lines: int, files: Path | None = None, limit: float = LIMIT) -> None:
        self._root, self._seed, self._lines, self._limit = root, seed, lines, limit
        self._callees = public()
        self._files = files or root / "files"
        if files is None:
            self._files.mkdir()
            write_files(self._files)
        self._path = [*sys.path]
        hold_port()

    def draw(self, number: int) -> tuple[Entry, Callable[[], tuple[str, str]]]:
        """Return an entry that was not run, and the function that runs it."""
        random = Random(f"{self._seed} {number}")
        if number < self._lines:
            words = command_line(random)
            name = words[0] if words[0] in _commands() else "(another word)"
            text = f"aadml {' '.join(map(shlex.quote, words))}"
            return Entry(number, text, f"aadml {name}"), partial(_command, words)
        name, text = python_call(random, self._callees)
        return Entry(number, text, f"{name}()"), partial(_python, text, self._files)

    def run(self, number: int) -> Entry:
        """Draw an entry and run it in a new folder."""
        entry, work = self.draw(number)
        folder = self._root / "entry"
        copy_files(self._files, folder)
        before, start = listing(folder), time.monotonic()
        with _surroundings(folder, self._path, self._limit) as late:
            entry.outcome, entry.detail = work()
            errors = f"{_printed()}\n{entry.detail}" if entry.outcome == "traceback" else _printed()
        entry.seconds = time.monotonic() - start
        if kinds := {kind_of(block, bool(late)) for block in tracebacks(errors)}:
            entry.outcome = "traceback" if "traceback" in kinds else min(kinds)
            entry.detail = errors[-3000:]
        elif entry.outcome == "130":
            entry.outcome = "time limit" if late else "traceback"
        printed = (folder / "home" / "stdout").read_text(encoding="utf-8", errors="surrogateescape")
        new = {path for path in listing(folder) - before if path not in printed}
        if _NO_RUN in entry.detail:  # the message names the folder with the reason of each run
            study = entry.detail.partition(_NO_RUN)[0].split()[-1].removesuffix(":")
            new = {path for path in new if not f"{study}/".startswith(f"{path}/") and not path.startswith(f"{study}/")}
        entry.left = _left(before, before & listing(folder) | new, bool(late) or entry.outcome in (*DONE, OF_USER))
        (folder / "readonly").chmod(0o755)
        shutil.rmtree(folder)
        return entry


def hold_port() -> None:
    """Listen on PORT until this process ends, unless another process listens there."""
    with suppress(OSError), socket.socket() as held:
        held.bind(("", PORT))
        held.listen()
        held.detach()


def tracebacks(text: str) -> list[str]:
    """Return the printed tracebacks in a text, without those that another error followed."""
    return [block for block in text.split("Traceback (most recent call last):")[1:] if not _FOLLOWED.search(block)]


def kind_of(block: str, late: bool) -> str:
    """Return the outcome of a traceback: "traceback" for a defect.

    Args:
        block: the traceback without its first line.
        late: whether the time limit has interrupted the entry.
    """
    error = next((line for line in block.splitlines() if line and not line.startswith(" ")), "")
    every = _FRAME.findall(block)
    frames = [
        frame
        for frame in every
        if _USERS.search(frame[0]) or (_AADML.search(frame[0]) and not _WRAPPER.search(":".join(frame)))
    ]
    if late and (error.startswith("KeyboardInterrupt") or not (every and _AADML.search(every[-1][0]))):
        return "time limit"  # some packages in C replace the KeyboardInterrupt by another error
    if error.startswith("TypeError") and error.endswith("unexpected keyword argument 'unknown'"):
        return OF_SIGNATURE  # Index.build and Index.update pass their keywords on
    if not frames or not _USERS.search(frames[-1][0]):
        return "traceback"
    if any(_AADML.search(file) for file, _ in frames):
        return OF_USER
    return OF_SIGNATURE if error.startswith("TypeError") else "traceback"


def _left(before: set[str], after: set[str], may_write: bool) -> list[str]:
    """Return the new paths that are not allowed, and the missing paths."""
    new = {path for path in after - before if not may_write or _TEMPORARY.search(path)}
    return [
        *sorted(f"new: {path}" for path in new),
        *sorted(f"missing: {path}" for path in before - after if not may_write),
    ]


def _commands() -> Sequence[str]:
    from aadml.cli import COMMANDS

    return COMMANDS


def _command(words: Sequence[str]) -> tuple[str, str]:
    """Run a command line as the entry point does; return its exit status and the end of its message."""
    from aadml.cli import main

    sys.argv = ["aadml", *words]
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        return "traceback", traceback.format_exc()
    message = _printed().strip()[-1000:]
    return (str(code), message) if code in (0, 1, 2, 3, 130) else ("traceback", f"exit status {code}: {message}")


def _python(text: str, files: Path) -> tuple[str, str]:
    """Evaluate a Python call; return "returned", or the class and the message of an error of aadml."""
    try:
        with closing(_Names(files)) as names:
            repr(eval(compile(text, ENTRY, "eval"), {}, names))
    except aadml.AadmlError as error:
        return type(error).__name__, str(error)[:1000]
    except KeyboardInterrupt:
        return "130", ""
    except BaseException:
        return "traceback", traceback.format_exc()
    return "returned", ""


class _Names(dict[str, Any]):
    """Names in expressions.

    Args:
        files: folder of the model and of the features; the index is that of the current folder.
    """

    def __init__(self, files: Path) -> None:
        import datetime
        import decimal
        import fractions

        import numpy as np
        import torch

        from aadml.feature_extraction import manifest
        from aadml.feature_extraction.feature_file import reading

        super().__init__(
            aadml=aadml, np=np, torch=torch, Path=Path, nan=float("nan"), inf=float("inf"), datetime=datetime,
            Decimal=decimal.Decimal, Fraction=fractions.Fraction, reading=reading, manifest=manifest,
            splits=partial(_splits, files), clips=lambda: _splits(files).test, model=partial(_model, files),
            index=lambda: self.setdefault("", aadml.Index("plain.index")),
        )  # fmt: skip

    def close(self) -> None:
        """Close the index that was opened."""
        if "" in self:
            self[""].close()


@cache
def _splits(files: Path) -> Any:
    return aadml.read(files / "features.h5")


@cache
def _model(files: Path) -> Any:
    return aadml.load(files / "run")


def _printed() -> str:
    """Return what was written to the error output, by this process and by its children."""
    sys.stderr.flush()
    return Path("home/stderr").read_text(encoding="utf-8", errors="replace")


@contextmanager
def _surroundings(folder: Path, path: Sequence[str], limit: float) -> Iterator[list[bool]]:
    """Prepare this process as if it was started in a folder; yield a list that has an item after the time limit."""
    from aadml.feature_extraction.ground import consent, import_paths

    late: list[bool] = []

    def interrupt(*_: object) -> None:
        late.append(True)
        signal.raise_signal(signal.SIGINT)

    cache = str(folder / "home" / "cache")
    changed = {"TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home"), "AADML_CACHE": cache, "HF_HOME": cache,
               "HF_HUB_OFFLINE": "1", "TORCHINDUCTOR_CACHE_DIR": cache,
               "http_proxy": _NOWHERE, "https_proxy": _NOWHERE}  # fmt: skip
    earlier = {name: os.environ.get(name) for name in changed}
    place, arguments, streams = Path.cwd(), sys.argv, (sys.stdin, sys.stdout, sys.stderr)
    timers = {signal.SIGPROF: (signal.ITIMER_PROF, limit), signal.SIGALRM: (signal.ITIMER_REAL, WAITING * limit)}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *timers)}
    os.environ.update(changed)
    os.chdir(folder)
    tempfile.tempdir = None
    with (
        Path("home/stdout").open("w", 1, "utf-8") as output,
        Path("home/stderr").open("w", 1, "utf-8", "backslashreplace") as errors,
        warnings.catch_warnings(),
    ):
        kept = os.dup(2)
        os.dup2(errors.fileno(), 2)
        sys.stdin, sys.stdout, sys.stderr = io.StringIO(), output, errors
        warnings.simplefilter("default")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, (timer, seconds) in timers.items():
            signal.signal(number, interrupt)
            signal.setitimer(timer, seconds, limit)
        try:
            yield late
        finally:
            for timer, _ in timers.values():
                signal.setitimer(timer, 0)
            os.dup2(kept, 2)
            os.close(kept)
            sys.argv, (sys.stdin, sys.stdout, sys.stderr) = arguments, streams
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.chdir(place)
            tempfile.tempdir = None
            for name, value in earlier.items():
                os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
            consent._names.clear()
            consent.folders.clear()
            import_paths._beside.clear()
            sys.path[:] = path


# -- processes --------------------------------------------------------------------------------------------------------


class User:
    """Runs entries in a process of a user, which is started again after an entry killed it.

    Args:
        name: name of the user.
        folder: an existing folder, whose owner becomes the user.
        options: options of the script: the seed and the counts.
    """

    def __init__(self, name: str, folder: Path, options: Sequence[str]) -> None:
        self.name, self._folder, self._options = name, folder, options
        self._results = folder / "results"
        self._user = pwd.getpwnam(name) if os.geteuid() == 0 else None
        self._results.touch()
        for path in (folder, self._results) if self._user else ():
            os.chown(path, self._user.pw_uid, self._user.pw_gid)
        self._python = next((path for path in _PYTHONS if self._can_run(path)), None)
        if self._python is None:
            raise click.ClickException(f"user {name} cannot run any of {', '.join(_PYTHONS)} with torch and aadml")
        self.process = self._work(0)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        site = [path for path in sys.path if path.endswith("site-packages")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *site]),
                       "OMP_NUM_THREADS": "1", "HOME": str(self._folder), "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        identity = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []} if self._user else {}
        with (self._folder / "errors").open("wb") as errors:
            return subprocess.Popen(words, cwd=self._folder, env=environment, stderr=errors, **identity)  # type: ignore[call-overload]

    def _can_run(self, python: str) -> bool:
        found = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ('torch', 'aadml'))))"
        with suppress(OSError):
            return self._start(python, "-c", found).wait() == 0
        return False

    def _work(self, first: int) -> subprocess.Popen[bytes]:
        script = str(Path(__file__).resolve())
        worker = ("--worker", str(self._folder), "--first", str(first))
        return self._start(str(self._python), script, *self._options, *worker)

    def entries(self) -> list[Entry]:
        """Return the entries that ended."""
        return [Entry(**line) for line in self._lines() if "outcome" in line]

    def _lines(self) -> list[dict[str, Any]]:
        with self._results.open() as results:
            return [json.loads(line) for line in results if line.endswith("\n")]

    def finished(self) -> bool:
        """Return whether all entries ended; start the process again if one killed it."""
        code = self.process.poll()
        if not code:
            return code == 0
        errors = (self._folder / "errors").read_text(errors="replace")[-3000:]
        lines = self._lines()
        if not lines or "outcome" in lines[-1]:
            raise click.ClickException(f"{self.name}: exit status {code} between entries: {errors}")
        with self._results.open("a") as results:
            results.write(json.dumps(asdict(Entry(**lines[-1], outcome="died", detail=f"{code}: {errors}"))) + "\n")
        self.process = self._work(lines[-1]["number"] + 1)
        return False


def work(folder: Path, seed: int, lines: int, calls: int, first: int) -> None:
    """Run entries in this process, and append them to the file `results` of a folder."""
    import torch

    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE, _FILE))
    files = folder / "files"
    if not (files / "done").exists():
        files.mkdir()
        write_files(files)
        (files / "done").touch()
    generator = Generator(folder, seed, lines, files)
    with (folder / "results").open("a", buffering=1) as results:
        for number in range(first, lines + calls):
            entry, _ = generator.draw(number)
            results.write(json.dumps({"number": number, "text": entry.text, "command": entry.command}) + "\n")
            faulthandler.dump_traceback_later(2 * WAITING * LIMIT, exit=True)
            results.write(json.dumps(asdict(generator.run(number))) + "\n")


def page(users: Mapping[str, Sequence[Entry]], title: str, lines: int, total: int) -> str:
    """Return the results as Markdown.

    Args:
        users: entries that ended, by user.
        title: command, commit and time.
        lines: number of command lines of each user.
        total: number of entries of each user.
    """
    done = ", ".join(f"{len(entries):,} as {user}" for user, entries in users.items())
    everything = [(user, entry) for user, entries in users.items() for entry in entries]
    failures = [(user, entry) for user, entry in everything if entry.failed]
    tracebacks = sum(entry.outcome in ("traceback", "died") for _, entry in everything)
    left_out = ", ".join(f"`{name}` ({reason})" for name, reason in CALLS_LEFT_OUT.items())
    text = [
        "# Generated command lines and Python calls",
        "",
        f"{title}. Of {total:,} entries ended: {done}.",
        "",
        f"{tracebacks} tracebacks; {sum(bool(entry.left) for _, entry in everything)} entries left something behind. "
        f"Left out: the calls {left_out}; the argument `work`.",
    ]

    def counted(entries: Sequence[Entry]) -> str:
        outcomes = Counter(entry.outcome for entry in entries)
        return ", ".join(f"{outcome} {count}" for outcome, count in sorted(outcomes.items())) or "none"

    for kind, word in (("command lines", "status"), ("Python calls", "outcome")):
        for user, entries in users.items():
            some = [entry for entry in entries if (entry.number < lines) == (kind == "command lines")]
            text += ["", f"## {len(some)} {kind} as {user}", "", f"By {word}: {counted(some)}.", ""]
            text += [f"| {kind[:-1]} | number | {word} | seconds |", "|---|---|---|---|"]
            for command in sorted({entry.command for entry in some}):
                of_command = [entry for entry in some if entry.command == command]
                seconds = sum(entry.seconds for entry in of_command)
                text.append(f"| {command} | {len(of_command)} | {counted(of_command)} | {seconds:.0f} |")
    text += ["", f"## {len(failures)} failures", ""]
    for user, entry in failures:
        text += [
            f"- {user}, {entry.number}: {entry.outcome}: `{entry.text[:500]}`",
            *(f"  - {path}" for path in entry.left),
        ]
        text += ["", "```", entry.detail, "```", ""] if entry.outcome in ("traceback", "died") else []
    return "\n".join(text).rstrip() + "\n"


@click.command(help=__doc__)
@click.option("--seed", default=0, show_default=True)
@click.option("--command-lines", "lines", default=6000, show_default=True)
@click.option("--python-calls", "calls", default=5000, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The report, as Markdown.")
@click.option("--only", type=int, help="Run one entry as the present user, and print its outcome.")
@click.option("--worker", type=click.Path(path_type=Path), hidden=True)
@click.option("--first", default=0, hidden=True)
def main(
    seed: int, lines: int, calls: int, output: Path | None, only: int | None, worker: Path | None, first: int
) -> None:
    if worker:
        work(worker, seed, lines, calls, first)
        return
    start = time.monotonic()
    options = ["--seed", str(seed), "--command-lines", str(lines), "--python-calls", str(calls)]
    git = ["git", "describe", "--always", "--dirty"]  # before the run, in which commits may be made
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    users: list[User] = []

    def report() -> str:
        minutes = (time.monotonic() - start) / 60
        command = f"scripts/soak/generated_calls.py {' '.join(options)}"
        title = f"Written by `{command}` at commit {commit}, {minutes:.0f} minutes"
        text = page({user.name: user.entries() for user in users}, title, lines, lines + calls)
        if output:
            write_bytes(output, text.encode(errors="backslashreplace"))
        return text

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    hold_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if only is not None:
            entry = Generator(Path(folder), seed, lines).run(only)
            print(entry.text, entry.outcome, entry.detail, *entry.left, sep="\n")
            sys.exit(entry.failed)
        Path(folder).chmod(0o755)
        try:
            names = [pwd.getpwuid(os.geteuid()).pw_name, *([OTHER_USER] if os.geteuid() == 0 else [])]
            for name in dict.fromkeys(names):
                (Path(folder) / name).mkdir()
                users.append(User(name, Path(folder) / name, options))
            while [user for user in users if not user.finished()]:
                time.sleep(10)
                report()
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
        finally:
            for user in users:
                user.process.kill()
                user.process.wait()
        print(report())
        sys.exit(any(entry.failed for user in users for entry in user.entries()))


if __name__ == "__main__":
    main()
