"""Show what is installed, which weights are present, and whether their self-tests pass."""

from typing import Any

import click

from aadml.cli.terminal import echo, echo_json

ENCODERS = (
    "log-mel and hog-color need no weights and suit the sample clips. For real data use a pretrained network",
    "(pip install 'aadml[hub]'): --audio hf:laion/clap-htsat-unfused, --visual hf:openai/clip-vit-base-patch32 or",
    "hf:facebook/dinov2-small, or your own folder as hf:FOLDER; docs/encoders.md compares these networks",
)
"""Advice on extractors for real data."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(as_json: bool) -> None:
    """Show the installed packages, and whether each weight file is present and passes its self-test.

    Nothing is downloaded. The exit status is 1 if a present weight file is not the published file, or fails its
    self-test.
    """
    import aadml

    report = aadml.doctor()
    _print(report, as_json)
    if any(weights["passed"] is False for weights in report["weights"].values()):
        raise click.exceptions.Exit(1)


def _print(report: Any, as_json: bool) -> None:
    if as_json:
        echo_json(report)
        return
    for name, value in {**report["system"], **report["packages"]}.items():
        echo(f"{name:<24} {value}")
    echo("", "extras")
    for extra, packages in report["extras"].items():
        missing = [name for name, version in packages.items() if not version]
        state = (
            f"absent: pip install 'aadml[{extra}]'" if missing else ", ".join(f"{n} {v}" for n, v in packages.items())
        )
        echo(f"  {extra:<22} {state}")
    echo("", "encoders")
    echo(*(f"  {line}" for line in ENCODERS))
    echo("", f"weights in {report['weights_folder']}")
    for name, weights in report["weights"].items():
        state = {None: "absent", True: "ok", False: "BROKEN"}[weights["passed"]]
        echo(f"  {name:<22} {state:<7} {weights['file']}: {weights['detail']}")
