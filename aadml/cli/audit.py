"""`aadml audit`: does any embedding depend on what it must not know?"""

from pathlib import Path

import click


@click.command("audit")
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--protocol", default="inductive", show_default=True, help="A protocol of `aadml list protocols`.")
@click.option("--split", default="test", show_default=True, help="The split that is scored.")
@click.option("--data", type=click.Path(path_type=Path), help="Feature file, to audit an encoder made elsewhere.")
@click.option("--encoder", help="MODULE:FUNCTION of (features by modality, labels) -> embeddings by modality.")
@click.option("--command", "shell", help="A command line with {input} (feature file) and {output} (HDF5).")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(
    run: Path | None,
    protocol: str,
    split: str,
    data: Path | None,
    encoder: str | None,
    shell: str | None,
    as_json: bool,
) -> None:
    """Audit RUN, or an encoder made elsewhere: labels, partners, batch, order, scaling, selection, metric, duplicates.

    Exits with 1 if a check fails.
    """
    import sys

    from aadml.cli.progress import note
    from aadml.runs.audit import audit

    findings = audit(run, data=data, encoder=encoder, command=shell, protocol=protocol, split=split, on_note=note)
    if as_json:
        import json

        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        words = {True: "pass", False: "FAIL", None: "none"}
        for finding in findings:
            click.echo(f"{words[finding.passed]}  {finding.check:<18}  {finding.evidence}")
    sys.exit(1 if any(finding.passed is False for finding in findings) else 0)
