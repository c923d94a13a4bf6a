"""`aadml audit`: does any embedding depend on what it must not know?"""

from pathlib import Path
from typing import Any

import click

from aadml.cli.trust import trust_option


@click.command("audit")
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--protocol", default="inductive", show_default=True, help="A protocol of `aadml list protocols`.")
@click.option("--split", default="test", show_default=True, help="The split that is scored.")
@click.option("--data", type=click.Path(path_type=Path), help="Feature file, to audit an encoder made elsewhere.")
@click.option("--encoder", help="MODULE:FUNCTION of (features by modality, labels) -> embeddings by modality.")
@click.option("--command", "shell", help="A command line with {input} (feature file) and {output} (HDF5).")
@click.option("--retrain", is_flag=True, help="Train RUN again without the scored clips, and compare the weights.")
@click.option("--time-limit", default=600.0, show_default=True, help="Limit on the seconds of one check.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@trust_option
def command(shell: str | None, as_json: bool, **options: Any) -> None:
    """Audit RUN, or an encoder made elsewhere: labels, ids, partners, batch, order, scaling, selection, duplicates.

    A check passes, fails, or is not checkable. Exit status 1 if one fails.
    """
    import sys

    from aadml.cli.progress import note
    from aadml.protocols.audit import summary
    from aadml.runs.audit import audit

    findings = audit(command=shell, on_note=note, **options)
    if as_json:
        import json

        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            click.echo(f"{finding.verdict:<13}  {finding.check:<19}  {finding.evidence}")
        click.echo(summary(findings), err=True)
    sys.exit(1 if any(finding.failed for finding in findings) else 0)
