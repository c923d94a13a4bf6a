"""Small trainings of every method, to be killed and damaged: a config each, and what two folders must share."""

import csv
import json
import wave
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aadml.configuration.assembly import assemble
from aadml.configuration.config import Config
from aadml.data.synthetic import synthetic
from aadml.methods import METHODS
from feature_extraction.feature_file import write_features

_NARROW = ["method.text_dimension=16", "training.batch=12"]
_TOWERS = [*_NARROW, "method.audio_width=2", "method.text_layers=1", "method.hidden=16", "method.dimension=16",
           "method.audio=cnn10"]  # fmt: skip
_NETWORK = ["network.hidden=[8]"]
_HIDDEN = ["method.hidden=[8]"]

SETTINGS: dict[str, list[str]] = {
    "aadml": _NETWORK,
    "cctl": _NETWORK,
    "cca": ["method.dimension=4"],
    "c-cca": ["method.dimension=4"],
    "tnn-c-cca": [*_HIDDEN, "method.dimension=4"],
    "dcca": ["method.outputs=4", "method.dimension=4"],
    "c-dcca": [*_HIDDEN, "method.outputs=4", "method.dimension=4", "training.batch=24"],
    "vae-cca": ["method.hidden=8", "method.inner=6", "method.dimension=4"],
    "clip": [*_HIDDEN, "method.dimension=8"],
    "pairs": [*_NETWORK, "method.dimension=8", "training.criterion=recall@3"],
    "dcil": [*_HIDDEN, "method.dimension=8"],
    "dscmr": [*_HIDDEN, "method.dimension=8"],
    "agah": ["method.hidden=[8, 8]", "method.dimension=8"],
    "bic-net": [*_HIDDEN, "method.dimension=8", "method.tokens=2", "method.depth=1"],
    "eics": [*_HIDDEN, "method.explicit=8", *_NETWORK],
    "tlca": _NETWORK,
    "video-adviser-lite": [*_HIDDEN, *_NETWORK],
    "msnsca": ["method.visual_hidden=8", "method.width=8"],
    "audio-text": _TOWERS,
    "3cmlf": [*_TOWERS, "method.shares=[1, 1, 1]", "method.ancillary_epochs=1", "training.batch=5"],
    "xie": [*_NARROW, "method.channels=8"],
}
"""method -> what makes its shipped config small."""

VARIANTS = {
    "aadml, loss daml": ("aadml", {"loss": "daml"}),
    "aadml, loss hdml": ("aadml", {"loss": "hdml"}),
    "aadml, loss aa-triplet": ("aadml", {"loss": "aa-triplet", "k": 2}),
    "tlca, until patience ends": ("tlca", {"settings": ["training.patience=1"]}),
}
"""Further trainings that write in another order: losses with parameters, a stage that ends early."""

STAGED = ("tlca", "video-adviser-lite", "dcil", "3cmlf")
OF_SOUND = {"audio-text": "audio_text", "3cmlf": "3cmlf", "xie": "xie"}
NAMES = (
    *(name for name in METHODS if name != "zero-shot"),
    *VARIANTS,
)  # which takes features of towers alone, and no step


@dataclass(frozen=True)
class Data:
    """Where the data of the trainings lie: vectors, and captioned sound."""

    features: Path
    captions: Path


def write_data(folder: Path) -> Data:
    """Write 42 clips of three classes as features, and a dozen captioned tones."""
    folder.mkdir(parents=True, exist_ok=True)
    data = Data(folder / "features.h5", folder / "manifest.csv")
    write_features(data.features, synthetic(classes=3, train=24, valid=9, test=9, dimensions=(6, 8), difficulty=0.2))
    rows = [["id", "media", "label", "split", "caption_1", "caption_2"]]
    for i in range(18):
        time = np.arange(6400) / 32_000
        samples = 9000 * np.sin(2 * np.pi * (200 + 150 * i) * time)
        with wave.open(str(folder / f"{i}.wav"), "wb") as file:
            file.setparams((1, 2, 32_000, len(samples), "NONE", ""))
            file.writeframes(samples.astype("<i2").tobytes())
        split = "train" if i < 10 else "valid" if i < 14 else "test"
        rows.append([f"t{i}", f"{i}.wav", "tone", split, f"Tone number {i}.", f"A tone, {i} of eighteen"])
    with data.captions.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return data


def config(name: str, data: Data) -> Config:
    """Give the config of a small training on the CPU: two epochs, three where there are stages."""
    method, options = VARIANTS.get(name, (name, {}))
    small = [f"training.epochs={3 if method in STAGED else 2}", "training.batch=12", *SETTINGS.get(method, [])]
    known = assemble(method=method, config=OF_SOUND.get(method)).values
    kept = [one for one in small if _is_known(known, one.split("=")[0])]
    further: dict[str, Any] = {key: value for key, value in options.items() if key != "settings"}
    return assemble(
        data=str(data.captions if method in OF_SOUND else data.features), method=method, config=OF_SOUND.get(method),
        settings=[*kept, *options.get("settings", [])], device="cpu", **further,
    )  # fmt: skip


def contents(folder: Path) -> dict[str, object]:
    """Give what two folders of the same training must share: all names, and all contents but seconds and run ids."""
    return {
        str(path.relative_to(folder)): _content(path) if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }  # fmt: skip


def _content(path: Path) -> object:
    data = path.read_bytes()
    if path.name == "manifest.json":
        return sorted(json.loads(data)["files"])
    if path.name == "metrics.jsonl":
        return [_timeless(json.loads(line)) for line in data.splitlines()]
    if path.name == "evaluation.json":
        return _timeless(json.loads(data))
    return data


def _timeless(record: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in record.items() if key != "seconds"})


def differences(one: dict[str, object], other: dict[str, object]) -> list[str]:
    """Name what differs between two folders."""
    names: Iterable[str] = sorted({*one, *other})
    missing = object()
    return [name for name in names if one.get(name, missing) != other.get(name, missing)]


def _is_known(values: Any, key: str) -> bool:
    for part in key.split("."):
        if part not in values:
            return False
        values = values[part]
    return True
