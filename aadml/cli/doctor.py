"""`aadml doctor`: what is installed, which weight files are there, and whether they work."""

from typing import Any

import click

EXTRAS = {
    "tfhub": ("tensorflow", "tensorflow-hub"),
    "text": ("transformers", "tokenizers"),
    "faiss": ("faiss-cpu",),
    "plot": ("matplotlib",),
}
CORE = (
    "torch", "numpy", "scipy", "scikit-learn", "h5py", "click", "opencv-python", "opencv-python-headless", "av",
    "pyyaml", "safetensors", "tqdm",
)  # fmt: skip


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(as_json: bool) -> None:
    """Say what is installed, which weights are there, and whether their self-tests pass. Nothing is fetched.

    Exit status 1 if a weight file that is there is not the published one or fails its self-test.
    """
    from feature_extraction.self_test import examine
    from feature_extraction.weights import WEIGHTS, weights_folder

    findings = [examine(name) for name in WEIGHTS]
    report: dict[str, Any] = {
        "system": _system(),
        "packages": {name: found for name in CORE if (found := _version(name))},
        "extras": {extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()},
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
    _print(report, as_json)
    if any(finding.passed is False for finding in findings):
        raise click.exceptions.Exit(1)


def _print(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps(report, indent=2))
        return
    for name, value in {**report["system"], **report["packages"]}.items():
        click.echo(f"{name:<24} {value}")
    click.echo("\nextras")
    for extra, packages in report["extras"].items():
        missing = [name for name, found in packages.items() if not found]
        state = f"absent: pip install 'aadml[{extra}]'" if missing else ", ".join(map(" ".join, packages.items()))
        click.echo(f"  {extra:<22} {state}")
    click.echo(f"\nweights in {report['weights_folder']}")
    for name, found in report["weights"].items():
        state = {None: "absent", True: "ok", False: "BROKEN"}[found["passed"]]
        click.echo(f"  {name:<22} {state:<7} {found['file']}: {found['detail']}")


def _system() -> dict[str, str]:
    import platform

    import torch

    from feature_extraction.network_run import bfloat16_units, chosen_device

    device = chosen_device("auto", "doctor")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    units = "with" if bfloat16_units(device) else "without"
    return {
        "aadml": _version("aadml") or "not installed",
        "python": platform.python_version(),
        "system": platform.platform(),
        "device": f"{name}, {units} bfloat16 units",
    }


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None
