"""`aadml ablate`: a grid of runs over config keys and seeds."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.settings import config_options
from aadml.cli.sweeps import sweep_options


@click.command(short_help="Run a grid over config keys and seeds; table, curves with spread, significance.")
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="KEY=VALUES",
    help="A config key and its values: proxy.k=1..7, loss=aa-triplet,aa-contrastive. Repeat to form a grid.",
)
@click.option("--data", help="Feature file in any layout.  [default: the sample clips]")
@click.option("--method", help="A method of `aadml list methods`; its configs/METHOD.yaml is the starting point.")
@config_options
@click.option("--epochs", type=int, help="training.epochs.")
@click.option(
    "--baseline",
    multiple=True,
    metavar="KEY=VALUE",
    help="Compare each cell with itself after this change; 'none' for no comparison.  [default: itself without "
    "anchor-aware proxy, or the first cell]",
)
@sweep_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder.  [default: ablations/KEYS-HASH]")
def command(
    over: tuple[str, ...],
    data: str | None,
    method: str | None,
    config: str | None,
    settings: tuple[str, ...],
    epochs: int | None,
    device: str | None,
    baseline: tuple[str, ...],
    seeds: int,
    metrics: tuple[str, ...],
    workers: int | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Run every combination of the values of --over with every seed, and test which differences are significant.

    Running the same command again continues where it stopped; finished runs are kept. A failed run does not stop the
    others (exit code 1). The folder holds the runs, results.md/.csv/.tex, curves as SVG, and report.html.
    """
    from aadml.cli.sweeps import finish, said, show, worked_off
    from aadml.reports.ablation_page import write_ablation
    from aadml.retrieval.requested import check_columns
    from aadml.runs.data import with_sample_data
    from aadml.sweeps.ablate import collected, jobs_of, plan_ablation
    from aadml.sweeps.grid import folder_name, parse_axis
    from aadml.sweeps.sweep import check_same_data, sole_owner

    axes = [parse_axis(text) for text in over]
    base = _base(data, method, config, settings, epochs, device)
    base = dict(with_sample_data(base, lambda message: click.echo(f"aadml: {message}", err=True)).values)
    columns = check_columns(metrics)
    ablation = plan_ablation(base, axes, range(seeds), _baseline(baseline))
    folder = output or Path("ablations") / folder_name(base, axes)
    with sole_owner(folder):
        check_same_data(folder, base["data"])
        outcomes = worked_off(jobs_of(ablation.cells, ablation.seeds, folder, columns), workers)
        scores = collected(ablation.cells, ablation.seeds, folder, outcomes)
        table, page = write_ablation(ablation, scores, folder, said("ablate"), columns)
    show([table], as_json=as_json)
    finish(outcomes, folder, page, as_json=as_json)


def _base(
    data: str | None,
    method: str | None,
    config: str | None,
    settings: tuple[str, ...],
    epochs: int | None,
    device: str | None,
) -> Any:
    from aadml.configuration.assembly import assemble
    from aadml.runs.data import place_of

    return assemble(
        data=place_of(data) if data else None, method=method, config=config, settings=settings, epochs=epochs,
        device=device, sample=data is None,
    )  # fmt: skip


def _baseline(texts: tuple[str, ...]) -> dict[str, Any] | None:
    from aadml.configuration.changes import parse_setting

    if not texts:
        return None
    return {} if texts == ("none",) else dict(parse_setting(text) for text in texts)
