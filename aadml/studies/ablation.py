"""`ablate`: a grid of runs over config keys and seeds, with its table, figures and page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from aadml.comparison.options import Count, CountOrZero, Seeds
from aadml.configuration.config import ConfigFile
from aadml.configuration.from_arguments import starting_file
from aadml.configuration.overrides import Settings, flag_settings, setting_pairs
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.strings import Note
from aadml.retrieval.judgments import judgment_files
from aadml.retrieval.metric_functions import check_columns
from aadml.runs.data import TrainingSource, data_location
from aadml.runs.sample_data import with_sample_data
from aadml.studies.ablation_grid import collected, jobs_of, plan_ablation
from aadml.studies.ablation_page import write_ablation
from aadml.studies.execution import Execution, RunJobs, SweepResult, log, shard_of
from aadml.studies.folder import refuse_foreign, sole_owner
from aadml.studies.grid import Overrides, at_most, axes_of, folder_name
from aadml.studies.sweep import sweep


@with_consent("config", "output")
def ablate(
    over: Mapping[str, Sequence[object]] | Sequence[str],
    *,
    data: str | Path | None = None,
    method: str | None = None,
    config: str | None = None,
    settings: Settings = (),
    max_epochs: Count | None = None,
    trust_code: bool = False,
    baseline: Settings | str = (),
    seeds: Seeds = 5,
    metrics: Sequence[str] | str | None = (),
    workers: CountOrZero | None = None,
    shard: str | None = None,
    merge: bool = False,
    output: str | Path | None = None,
    command: str = "aadml.ablate",
    work: RunJobs = sweep,
    on_note: Note | None = None,
) -> SweepResult:
    """Run every combination of values with every seed, and test the differences from the baselines for significance.

    A repeated call continues an interrupted study and keeps finished runs. A failed run does not stop the others.

    Args:
        over: config key and its values: proxy.k=1..7, loss=aa-triplet,aa-contrastive. Several keys, passed one by one
            or as a mapping, form a grid. Settings of a loss, such as the margin, apply to every loss of the grid.
            Settings of the proxy, the selection and the directions override the settings that each loss implies.
        data: a feature file in any layout; None uses the first data of an axis `data`, or else the data of the
            config, or the sample clips if the config has no data.
        method: method of `aadml list methods`, with the preset configs/METHOD.yaml.
        config: a YAML file, or the name of a preset.
        settings: config keys and values, as "key=value".
        max_epochs: upper limit on the training epochs of every run.
        trust_code: import the code from outside aadml that the config file or a run in the folder names as
            `module:name`.
        baseline: settings that turn a cell into its baseline; "none" omits the comparison. By default, the baseline is
            the cell without the anchor-aware proxy, or the first cell if no cell has this proxy.
        seeds: number of seeds per cell.
        metrics: metrics that have columns in addition to MAP, such as recall@10.
        workers: number of worker processes; 0 is this process. By default one per core, or a single one on a GPU.
        shard: "i/n": train only every n-th run, from run i (0 to n - 1). Other machines can train the other runs.
        merge: collect finished runs without training, and raise an error if a run is missing.
        output: folder of the study; by default `ablations/KEYS-HASH`.
        command: command shown on the page.
        work: function that runs the jobs.
        on_note: called with notes for the user; by default they go to the logger "aadml".

    Raises:
        InputError: an argument is invalid or cannot be combined with another argument. Other causes: a key or value
            that the config rejects, a folder or data that cannot be used, no finished run, or a missing run in a merge.
    """
    shards, note = shard_of(shard, merge=merge), on_note or log
    axes = axes_of(over)
    if not axes:
        raise InputError('over is empty; pass a key and its values, such as {"proxy.k": [1, 3]}')
    if data is None:
        data = next((str(axis.values[0]) for axis in axes if axis.key == "data" and axis.values[0] is not None), None)
    file = _starting_file(data, config, method, settings, note)
    written = file.resolve()
    base = with_sample_data(written, note)
    named = written if written.common.data else base
    columns = check_columns(metrics)
    changed = Overrides(dict(setting_pairs(settings)))
    cells_from = file.changed({"data": base.data})
    ablation = plan_ablation(cells_from, axes, range(seeds), _baseline(baseline), changed, max_epochs)
    execution = Execution(
        folder=Path(output) if output else Path("ablations") / folder_name(at_most(named, max_epochs), axes),
        workers=workers, shard=shards, merge=merge, work=work, note=note, command=command,
    )  # fmt: skip
    refuse_foreign(execution.folder)
    all_data = list(dict.fromkeys(data_location(cell.config.data) for cell in ablation.cells))
    judgments = judgment_files(cell.config.common.relevance for cell in ablation.cells)
    with sole_owner(execution.locked, {execution.folder: all_data}, judgments):
        outcomes = execution.train(jobs_of(ablation.cells, ablation.seeds, execution.folder, columns))
        if execution.shard:
            return SweepResult(tuple(outcomes), execution.folder)
        scores = collected(ablation.cells, ablation.seeds, execution.folder, outcomes)
        table, page = write_ablation(ablation, scores, execution, columns)
    return SweepResult(tuple(outcomes), execution.folder, [table], page, scores)


def _starting_file(
    data: str | Path | None, config: str | None, method: str | None, settings: Settings, note: Note
) -> ConfigFile:
    source = TrainingSource(data, settings)
    start = source.starting_config(config, method, note)
    file = starting_file(str(start) if start else None, method, sample=source.data is None)
    return file.changed(flag_settings({"data": source.place})).changed(settings)


def _baseline(settings: Settings | str) -> Overrides | None:
    if not settings:
        return None
    settings = [settings] if isinstance(settings, str) else settings
    return Overrides({} if tuple(settings) == ("none",) else dict(setting_pairs(settings, "--baseline")))
