"""Compare methods, and losses with and without the proxy, beside the published values."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.progress import note
from aadml.cli.settings import config_options, flags_of, key_flag
from aadml.cli.sweeps import MAX_EPOCHS, command_line, show, sweep_options, work
from aadml.cli.trust import trust_option

_flag = flags_of("aadml.studies.comparison:compare")


@click.command()
@key_flag("data")
@key_flag("modalities")
@_flag("--methods")
@_flag("--losses")
@config_options
@MAX_EPOCHS
@_flag("--controls/--no-controls", "with_controls", default=True, show_default=True)
@_flag("--rivals", "with_rivals", is_flag=True)
@_flag("--baseline")
@_flag("--trials", default=1, show_default=True, type=click.IntRange(min=1))
@sweep_options
@_flag("-o", "--output", type=click.Path(path_type=Path))
@trust_option
def command(as_json: bool, **options: Any) -> None:
    """Train rows of the papers' tables on a feature file with several seeds, and compare each row with a baseline.

    The differences are tested for significance. By default, an anchor-aware row has control rows: the loss without
    proxy, and the proxy over random neighbors of the class. With a label loss, two more control rows have no proxy: one
    with half the metric weight, and one without metric loss. Run the same command again to continue an interrupted
    comparison. After a failed row, the other rows are still trained, and the exit status is 1.
    """
    import aadml

    show(aadml.compare(**options, command=command_line(), work=work, on_note=note), as_json=as_json)
