"""A paper from its data sets to one page: `reproduce`.

>>> from aadml.papers import reproduce
>>> result = reproduce("paper", ave="AVE.h5", quick=True)
>>> result.page
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from aadml.feature_extraction.ground.consent import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.ground.strings import Note
from aadml.papers.aadml_paper import reproduce_paper
from aadml.papers.audio_text import reproduce_audio_text
from aadml.papers.audio_text_tables import DATASETS, PAPER_TABLES
from aadml.papers.paper_data import PAPER
from aadml.papers.reproduction_plan import Confirm, ReproductionPlan
from aadml.runs.data import data_location
from aadml.studies.execution import RunJobs, SweepResult, log, shard_of
from aadml.studies.folder import refuse_foreign
from aadml.studies.sweep import sweep


@with_consent("config", "output")
def reproduce(
    paper: str,
    *,
    vegas: str | Path | None = None,
    ave: str | Path | None = None,
    audiocaps: str | Path | None = None,
    clotho: str | Path | None = None,
    only: str | None = None,
    quick: bool = False,
    seeds: int | None = None,
    config: str | None = None,
    settings: Sequence[str] = (),
    max_epochs: int | None = None,
    device: str | None = None,
    trust_code: bool = False,
    workers: int | None = None,
    shard: str | None = None,
    merge: bool = False,
    output: str | Path | None = None,
    command: str = "aadml.papers.reproduction",
    work: RunJobs = sweep,
    confirm: Confirm = lambda forecast: None,
    on_note: Note | None = None,
) -> SweepResult:
    """Reproduce the tables and figures of a paper on its data sets, on one page beside the published figures.

    The same call again continues where it stopped; finished runs are kept. A failed run does not stop the others.

    Args:
        paper: "paper" (AADML), or one of audio and text ("mei", "3cmlf", "xie").
        vegas: VEGAS' features in any layout.
        ave: AVE's features in any layout; parts that need a missing data set are left out.
        audiocaps: AudioCaps, for the papers of audio and text: a folder or a manifest.
        clotho: Clotho, likewise; without both, the sample clips are used.
        only: parts of the AADML paper, separated by commas; None is all.
        quick: shortened schedules (and narrow audio-text networks), two seeds, for a first look.
        seeds: number of seeds per row; 5 by default.
        config: config that losses are put into; by default the preset of each data set.
        settings: any keys of the config, as "key=value"; a row that does not have a key is noted.
        max_epochs: upper limit on the training epochs of every row.
        device: "auto", "cpu" or "cuda".
        trust_code: import the code from outside aadml that the config file, or a run of the folder, names
            as `module:name`.
        workers: processes; 0 runs in this process, None takes one per core.
        shard: "i/n": train only every n-th run, for another machine to train the others.
        merge: train nothing; refuse where a run is missing.
        output: folder; by default `reproductions/PAPER`.
        command: command on the page.
        work: runs the jobs.
        confirm: called with the forecast before anything is trained.
        on_note: called with notes for the user; by default they go to the logger "aadml".

    Raises:
        InputError: no data, an unknown paper or part, a setting that fits no row, or a run missing from a merge.
    """
    shards = shard_of(shard, merge=merge)
    lookup({"paper": None, **PAPER_TABLES}, paper, "paper")
    places = {"vegas": vegas, "ave": ave, "audiocaps": audiocaps, "clotho": clotho}
    data = {name: data_location(place) for name, place in places.items() if place is not None}
    possible: Collection[str] = PAPER.data_sets if paper == "paper" else DATASETS
    for name in data:
        if name not in possible:
            raise InputError(f"reproduce {paper}: is of {' and '.join(possible)}, not of {name}; leave --{name} out")
    plan = ReproductionPlan(
        folder=Path(output) if output else Path("reproductions") / (f"{paper}-quick" if quick else paper),
        workers=workers, shard=shards, merge=merge, work=work, note=on_note or log, command=command,
        seeds=range(seeds if seeds is not None else 2 if quick else 5), confirm=confirm, quick=quick, config=config,
        settings=settings, max_epochs=max_epochs, device=device,
    )  # fmt: skip
    refuse_foreign(plan.folder)
    if paper == "paper":
        if not data:
            raise InputError("reproduce paper: give --vegas F.h5, --ave G.h5, or both")
        return reproduce_paper(data, only, plan)
    if only:
        raise InputError(f"reproduce {paper}: has no parts; leave --only out")
    return reproduce_audio_text(paper, data, plan)
