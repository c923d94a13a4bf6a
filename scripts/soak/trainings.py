"""Small training runs of every method for kills and damages: configs, and the parts that two folders must share."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from small_trainings import OF_SOUND, SETTINGS, STAGED, write_tones

from aadml.configuration.config import Config
from aadml.configuration.from_arguments import assemble
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.methods import METHODS

VARIANTS = {
    "aadml, loss daml": ("aadml", {"loss": "daml"}),
    "aadml, loss hdml": ("aadml", {"loss": "hdml"}),
    "aadml, loss aa-triplet": ("aadml", {"loss": "aa-triplet", "settings": ["proxy.k=2"]}),
    "tlca, until patience ends": ("tlca", {"settings": ["training.patience=1"]}),
}
"""Further training runs with another order of writes: losses with parameters, a stage that ends early."""

NAMES = (
    *(name for name in METHODS if name != "zero-shot"),
    *VARIANTS,
)  # zero-shot needs features of towers, and has no training steps


@dataclass(frozen=True)
class Data:
    """Paths of the data of the training runs: vectors, and captioned sound."""

    features: Path
    captions: Path


def write_data(folder: Path) -> Data:
    """Write 42 clips of three classes as features, and a dozen captioned tones."""
    folder.mkdir(parents=True, exist_ok=True)
    data = Data(folder / "features.h5", folder / "manifest.csv")
    write_features(data.features, synthetic(classes=3, train=24, valid=9, test=9, dimensions=(6, 8), difficulty=0.2))
    write_tones(data.captions)
    return data


def config(name: str, data: Data) -> Config:
    """Return the config of a small training run on the CPU: two epochs, or three for methods with stages."""
    method, options = VARIANTS.get(name, (name, {}))
    small = [f"training.epochs={3 if method in STAGED else 2}", "training.batch=12", *SETTINGS.get(method, [])]
    known = assemble(method=method, config=OF_SOUND.get(method)).values
    kept = [one for one in small if _is_known(known, one.split("=")[0])]
    further: dict[str, Any] = {key: value for key, value in options.items() if key != "settings"}
    return assemble(
        data=str(data.captions if method in OF_SOUND else data.features), method=method, config=OF_SOUND.get(method),
        settings=["device=cpu", *kept, *options.get("settings", [])], **further,
    )  # fmt: skip


def contents(folder: Path) -> dict[str, object]:
    """Return the parts that folders of equal training share: all names, and contents without seconds and run ids."""
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
    """Return the differences between two folders."""
    names: Iterable[str] = sorted({*one, *other})
    missing = object()
    return [name for name in names if one.get(name, missing) != other.get(name, missing)]


def _is_known(values: Any, key: str) -> bool:
    for part in key.split("."):
        if part not in values:
            return False
        values = values[part]
    return True
