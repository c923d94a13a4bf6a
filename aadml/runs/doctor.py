"""What is installed, which weight files are there, and whether they work."""

import platform
from typing import TypedDict

import torch

from aadml.feature_extraction.frontends.inference import bfloat16_units, chosen_device
from aadml.feature_extraction.self_test import examine
from aadml.feature_extraction.weights.table import WEIGHTS, weights_folder
from aadml.runs.environment import installed_version

EXTRAS = {
    "tfhub": ("tensorflow", "tensorflow-hub"),
    "hub": ("transformers", "tokenizers", "pillow"),
    "faiss": ("faiss-cpu",),
    "parquet": ("pyarrow",),
    "plot": ("matplotlib",),
    "serve": ("starlette", "uvicorn"),
}
CORE = (
    "torch", "numpy", "scipy", "scikit-learn", "h5py", "click", "opencv-python", "opencv-python-headless", "av",
    "pyyaml", "safetensors", "tqdm",
)  # fmt: skip


class WeightFindings(TypedDict):
    """A weight file: `passed` is None where it is absent."""

    file: str
    present: bool
    passed: bool | None
    detail: str
    purpose: str
    license: str
    citation: str


class Findings(TypedDict):
    """What `aadml doctor --json` prints."""

    system: dict[str, str]
    packages: dict[str, str]
    extras: dict[str, dict[str, str | None]]
    weights_folder: str
    weights: dict[str, WeightFindings]


def doctor() -> Findings:
    """Show what is installed, which weights are present, and whether their self-tests pass. Nothing is fetched.

    Returns:
        What `aadml doctor --json` prints; under "weights", "passed" is None where a file is absent.
    """
    findings = [examine(name) for name in WEIGHTS]
    return {
        "system": _system(),
        "packages": {name: found for name in CORE if (found := installed_version(name))},
        "extras": {extra: {name: installed_version(name) for name in names} for extra, names in EXTRAS.items()},
        "weights_folder": str(weights_folder()),
        "weights": {
            finding.name: {
                "file": finding.path.name,
                "present": finding.present,
                "passed": finding.passed,
                "detail": finding.detail,
                "purpose": WEIGHTS[finding.name].purpose,
                "license": WEIGHTS[finding.name].license,
                "citation": WEIGHTS[finding.name].citation,
            }
            for finding in findings
        },
    }


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
