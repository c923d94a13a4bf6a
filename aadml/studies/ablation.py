"""An ablation from names to page: a grid of runs over config keys and seeds."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aadml.configuration.from_arguments import assemble
from aadml.configuration.overrides import Settings, setting_pairs
from aadml.feature_extraction.ground.consent import with_consent
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.retrieval.metric_functions import check_columns
from aadml.runs.data import data_location, starting_config
from aadml.runs.sample_data import with_sample_data
from aadml.studies.ablation_grid import collected, jobs_of, plan_ablation
from aadml.studies.ablation_page import write_ablation
from aadml.studies.folder import refuse_foreign, sole_owner
from aadml.studies.grid import axes_of, folder_name
from aadml.studies.shards import Division
from aadml.studies.sweep_result import RunJobs, SweepResult, run_jobs

_log = logging.getLogger("aadml")


@with_consent("config", "output")
def ablate(
    over: Mapping[str, Sequence[Json]] | Sequence[str],
    *,
    data: str | Path | None = None,
    method: str | None = None,
    config: str | None = None,
    settings: Settings = (),
    epochs: int | None = None,
    device: str | None = None,
    trust_code: bool = False,
    baseline: JsonObject | Sequence[str] = (),
    seeds: int = 5,
    metrics: Sequence[str] | str | None = (),
    workers: int | None = None,
    shard: str | None = None,
    merge: bool = False,
    output: str | Path | None = None,
    command: str = "aadml.ablate",
    work: RunJobs = run_jobs,
    on_note: Callable[[str], None] | None = None,
) -> SweepResult:
    """Run every combination of values with every seed, and test which differences are significant.

    The same call again continues where it stopped; finished runs are kept. A failed run does not stop the others.

    Args:
        over: config key -> values, or "key=1..7" and "key=a,b" as on the command line. Settings of a loss (its margin)
            are those of every loss that is named here.
        data: a feature file in any layout; None takes the sample clips.
        method: a name of `aadml list methods`.
        config: a YAML file, or the name of a shipped one.
        settings: any keys of the config.
        epochs: `training.epochs`.
        device: "auto", "cpu" or "cuda".
        trust_code: import the code from outside aadml that the config file, or a run of the folder, names
            as `module:name`.
        baseline: config keys and values that turn a cell into the one it is compared with; "none" compares nothing.
            By default the cell without anchor-aware proxy, or the first cell.
        seeds: number of seeds per cell.
        metrics: further columns.
        workers: processes; 0 runs in this process, None takes one per core.
        shard: "i/n": train only every n-th run, for another machine to train the others.
        merge: train nothing; refuse where a run is missing.
        output: folder; by default `ablations/KEYS-HASH`.
        command: what the page says it was made with.
        work: runs the jobs.
        on_note: called with notes for the user; by default they go to the logger "aadml".

    Raises:
        InputError: a key or value that the config refuses, a folder that holds something else, or a run missing from a
            merge.
    """
    division, note = Division.of(shard, merge=merge), on_note or _log.info
    axes = axes_of(over)
    start = starting_config(data, config, method, note)
    base = assemble(
        data=data_location(data) if data else None, method=method, config=str(start) if start else None,
        settings=settings, epochs=epochs, device=device, sample=data is None,
    )  # fmt: skip
    chosen = with_sample_data(base, note)
    values = chosen.values
    columns = check_columns(metrics)
    given = dict(setting_pairs(settings)) | ({} if epochs is None else {"training.epochs": epochs})
    ablation = plan_ablation(values, axes, range(seeds), _baseline(baseline), given)
    folder = Path(output) if output else Path("ablations") / folder_name(values, axes)
    refuse_foreign(folder)
    with sole_owner(division.owned(folder), {folder: chosen.data}):
        jobs = jobs_of(ablation.cells, ablation.seeds, folder, columns)
        outcomes = division.worked_off(jobs, lambda own: work(own, workers), note)
        if division.shard:
            return SweepResult((), tuple(outcomes), folder, None)
        scores = collected(ablation.cells, ablation.seeds, folder, outcomes)
        table, page = write_ablation(ablation, scores, folder, command, columns)
    return SweepResult((table,), tuple(outcomes), folder, page)


def _baseline(given: JsonObject | Sequence[str]) -> JsonObject | None:
    if not given:
        return None
    if isinstance(given, Mapping):
        return given
    return {} if tuple(given) == ("none",) else dict(setting_pairs(given, "--baseline"))
