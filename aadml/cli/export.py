"""Write a model as ONNX or torch.export, one file per modality."""

from pathlib import Path

import click

from aadml.cli.terminal import echo
from aadml.cli.trust import trust_option


@click.command("export")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(),
    help="File.onnx or file.pt2 (one file per modality, such as file-audio.onnx), or hf:ORGANIZATION/NAME.",
)  # fmt: skip
@trust_option
def command(run: Path, output: str) -> None:
    """Write RUN as ONNX or torch.export, one file per modality, or upload RUN to the Hugging Face Hub.

    The output of each file is compared with that of RUN.
    """
    import aadml

    if output.startswith("hf:"):
        echo(aadml.load(run, device="cpu").push_to_hub(output))
        return
    for head in aadml.export(run, output):
        echo(
            f"{head.path} maps {head.modality} (n, {head.width}) to embeddings (n, {head.dimension}), which differ "
            f"from the model's by at most {head.difference:.1e}"
        )
