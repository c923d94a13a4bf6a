"""Report on installed packages and weight files, with self-tests of the weights."""

import platform
import re
from importlib.metadata import PackageNotFoundError, requires
from typing import TypedDict

import torch

from aadml.feature_extraction.frontends.inference import bfloat16_units, chosen_device
from aadml.feature_extraction.self_test import examine
from aadml.feature_extraction.weights.table import WEIGHTS, weights_folder
from aadml.runs.environment import HEADLESS, installed_version


class WeightsReport(TypedDict):
    """Weight file with the result of its self-test; `passed` is None if the file is absent."""

    file: str
    present: bool
    passed: bool | None
    detail: str
    purpose: str
    license: str
    citation: str


class DoctorReport(TypedDict):
    """Output of `aadml doctor --json`.

    Attributes:
        system: versions of aadml, Python and the system, and the device.
        packages: installed package -> version.
        extras: extra -> package -> version; None if the package is not installed.
        weights_folder: folder of weight files.
        weights: name -> weight file.
    """

    system: dict[str, str]
    packages: dict[str, str]
    extras: dict[str, dict[str, str | None]]
    weights_folder: str
    weights: dict[str, WeightsReport]


def doctor() -> DoctorReport:
    """Return the installed packages, and whether each weight file is present and passes its self-test.

    Nothing is downloaded.
    """
    core, extras = _requirements()
    return {
        "system": _system(),
        "packages": {name: version for name in core if (version := installed_version(name))},
        "extras": {extra: {name: installed_version(name) for name in names} for extra, names in extras.items()},
        "weights_folder": str(weights_folder()),
        "weights": {name: _weights(name) for name in WEIGHTS},
    }


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Return the required packages, including the package that may replace OpenCV, and the packages of each extra."""
    core, extras = [HEADLESS], dict[str, list[str]]()
    try:
        lines = requires("aadml") or []
    except PackageNotFoundError:  # a checkout that is not installed
        lines = []
    for line in lines:
        extra = re.search(r"extra == ['\"]([\w-]+)", line)
        names = extras.setdefault(extra[1], []) if extra else core
        names += re.findall(r"^[\w.-]+", line)
    return core, extras


def _weights(name: str) -> WeightsReport:
    test, published = examine(name), WEIGHTS[name]
    return {
        "file": published.file, "present": test.passed is not None, "passed": test.passed, "detail": test.detail,
        "purpose": published.purpose, "license": published.license, "citation": published.citation,
    }  # fmt: skip


def _system() -> dict[str, str]:
    device = chosen_device("auto", "doctor")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    units = "with" if bfloat16_units(device) else "without"
    return {
        "aadml": installed_version("aadml") or "not installed",
        "python": platform.python_version(),
        "system": platform.platform(),
        "device": f"{name}, {units} bfloat16 units",
    }
