"""`reproduce`: reproduction of a paper, from its data sets to one page.

>>> from aadml import reproduce
>>> result = reproduce("paper", ave="AVE.h5", quick=True)
>>> result.page
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from aadml.comparison.options import Count, CountOrZero, Seeds
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.ground.strings import Note
from aadml.papers.aadml_paper import reproduce_paper
from aadml.papers.audio_text import DATASETS, PAPER_TABLES, reproduce_audio_text
from aadml.papers.reproduction_plan import Confirm, ReproductionPlan
from aadml.reports.published import PAPER
from aadml.runs.data import data_location
from aadml.studies.execution import RunJobs, SweepResult, log, shard_of
from aadml.studies.folder import refuse_foreign
from aadml.studies.sweep import sweep


@with_consent("output")
def reproduce(
    paper: str,
    *,
    vegas: str | Path | None = None,
    ave: str | Path | None = None,
    audiocaps: str | Path | None = None,
    clotho: str | Path | None = None,
    only: str | None = None,
    quick: bool = False,
    seeds: Seeds | None = None,
    settings: Sequence[str] = (),
    max_epochs: Count | None = None,
    trust_code: bool = False,
    workers: CountOrZero | None = None,
    shard: str | None = None,
    merge: bool = False,
    output: str | Path | None = None,
    command: str = "aadml.papers.reproduction",
    work: RunJobs = sweep,
    confirm: Confirm = lambda forecast: None,
    on_note: Note | None = None,
) -> SweepResult:
    """Reproduce the tables and figures of a paper on its data sets, on one page next to the published results.

    A repeated call continues an interrupted study and keeps finished runs. A failed run does not stop the others.

    Args:
        paper: "paper" (AADML), or an audio-text paper ("mei", "3cmlf", "xie").
        vegas: features of VEGAS, in any layout.
        ave: features of AVE, in any layout. Parts without any of their data sets are left out.
        audiocaps: folder or manifest of AudioCaps, for the audio-text papers.
        clotho: folder or manifest of Clotho, for the audio-text papers. Without AudioCaps and Clotho, the sample
            clips are used.
        only: parts of the AADML paper, separated by commas: table-1, table-2, table-3, figure-3, figure-4,
            figure-5, clock-draw; by default all.
        quick: shorten the schedules and narrow the audio-text networks, so that the whole page takes minutes.
        seeds: number of seeds per row; by default 5, or 2 if the schedules are shortened.
        settings: values of any keys of the config, as "key=value". A note lists the rows that lack a key.
        max_epochs: upper limit on the training epochs of every row.
        trust_code: import code from outside aadml that the config of a finished run names as `module:name`.
        workers: number of worker processes; 0 trains in this process. The default is one worker process per core,
            or a single worker process on a GPU.
        shard: "i/n" trains only every n-th run, starting with run i, where i is between 0 and n - 1. Other machines
            can train the other runs.
        merge: only collect finished runs, and raise an error if a run is missing. Runs that a shard could not train on
            their data are not missing.
        output: folder of the study; by default `reproductions/PAPER`, or `reproductions/PAPER-quick` with `quick`.
        command: command shown on the page.
        work: function that runs the jobs.
        confirm: called with the time estimate before training.
        on_note: called with notes for the user; by default they go to the logger "aadml".

    Returns:
        Outcomes of the runs, tables, and the path of the page.

    Raises:
        InputError: an unknown paper or part, missing or unreadable data, an argument or a setting that does not
            apply, or a run missing from a merge.
    """
    shards = shard_of(shard, merge=merge)
    lookup({"paper": None, **PAPER_TABLES}, paper, "paper")
    places = {"vegas": vegas, "ave": ave, "audiocaps": audiocaps, "clotho": clotho}
    data = {name: data_location(place) for name, place in places.items() if place is not None}
    possible: Collection[str] = PAPER.data_sets if paper == "paper" else DATASETS
    for name in data:
        if name not in possible:
            raise InputError(f"reproduce {paper} uses {' and '.join(possible)}, not {name}; leave out --{name}")
    plan = ReproductionPlan(
        folder=Path(output) if output else Path("reproductions") / (f"{paper}-quick" if quick else paper),
        workers=workers, shard=shards, merge=merge, work=work, note=on_note or log, command=command,
        seeds=range(seeds if seeds is not None else 2 if quick else 5), confirm=confirm, quick=quick,
        settings=settings, max_epochs=max_epochs,
    )  # fmt: skip
    refuse_foreign(plan.folder)
    if paper == "paper":
        if not data:
            raise InputError("reproduce paper: no data were passed; pass --vegas F.h5, --ave G.h5, or both options")
        return reproduce_paper(data, only, plan)
    if only:
        raise InputError(f"reproduce {paper}: the paper is not divided into parts; leave out --only")
    return reproduce_audio_text(paper, data, plan)
