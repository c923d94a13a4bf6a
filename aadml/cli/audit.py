"""Check whether embeddings depend on labels, partners, batch or order, with evidence."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.settings import flags_of
from aadml.cli.terminal import echo, echo_json
from aadml.cli.trust import trust_option

_flag = flags_of("aadml.runs.audit:audit")


@click.command("audit")
@click.argument("run", required=False, type=click.Path(path_type=Path))
@_flag("--protocol")
@_flag("--split", default="test", show_default=True)
@_flag("--data")
@click.option("--encoder", help="Encoder as MODULE:FUNCTION: (features by modality, labels) -> embeddings by modality.")
@click.option("--command", "shell", help="Encoder as a command line with {input} (a feature file) and {output} (HDF5).")
@_flag("--train-command")
@_flag("--mteb", metavar="TASK")
@_flag("--allow", multiple=True, type=click.Path(path_type=Path))
@_flag("--retrain", is_flag=True)
@_flag("--time-limit", default=600.0, show_default=True)
@click.option("--require-training", is_flag=True, help="Exit with 3 also if the verdict on training is unknown.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts and findings as JSON.")
@trust_option
def command(shell: str | None, require_training: bool, as_json: bool, **options: Any) -> None:
    """Audit RUN, an external encoder or an MTEB task for leaks.

    The checks concern labels, ids, partners, batch, order, scaling, selection and duplicates. The verdict on
    inference and the verdict on training are each "passed", "failed" or "unknown". The exit status is 1 after a
    failed check, and 3 for an unknown verdict on inference. With --require-training, the exit status is also 3 if
    the verdict on training is unknown.
    """
    import sys

    import aadml
    from aadml.cli.progress import JobBar, note

    with JobBar("step") as bar:
        findings = aadml.audit(
            command=shell, on_note=note, progress=lambda done, total: bar.show(f"audit of {total}", done, 0), **options
        )
    if as_json:
        verdicts = {"inference": findings.inference, "training": findings.training, "verdict": findings.summary}
        echo_json(verdicts | {"findings": [vars(finding) for finding in findings]})
    else:
        echo(*repr(findings).split("\n"))
    is_unknown = "unknown" in (findings.inference, findings.training if require_training else "")
    sys.exit(1 if findings.failed else 3 if is_unknown else 0)
