"""Extraction from the path of a manifest and the names of extractors, as on the command line."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from aadml.feature_extraction.backbones import Extractor, extractor, options_of
from aadml.feature_extraction.engines import engine_of
from aadml.feature_extraction.feature_file.replacement import refuse_other_clips
from aadml.feature_extraction.foreign.tables import is_remote
from aadml.feature_extraction.ground.atomic import refuse_links
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.options import Options
from aadml.feature_extraction.ground.processor_time import require_seconds
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.jobs.assembly import refuse_foreign
from aadml.feature_extraction.jobs.extract import ExtractionOutcome, execute
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.jobs.recipes import RECIPES
from aadml.feature_extraction.jobs.shard_names import shard_path
from aadml.feature_extraction.jobs.trial import try_out
from aadml.feature_extraction.jobs.weights import fetch
from aadml.feature_extraction.jobs.windows import read_windows, windowed
from aadml.feature_extraction.manifest import RECORDING, Manifest, open_manifest
from aadml.feature_extraction.media.inputs import Damaged, Limits
from aadml.feature_extraction.weights.hub_names import PREFIX

DEFAULTS = {"audio": "log-mel", "visual": "hog-color"}
"""Extractors of a job that names no extractors; these extractors need no weights."""

NONE = "none"
"""Name that excludes a modality from DEFAULTS."""


def extract(
    manifest: Manifest | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    audio: str | None = None,
    visual: str | None = None,
    text: str | None = None,
    recipe: str | None = None,
    options: Options | None = None,
    weights: str | None = None,
    windows: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    time_limit: float = 120.0,
    max_seconds: float = 3600.0,
    damaged: Damaged = "keep",
    shard: tuple[int, int] = (0, 1),
    retry_failed: bool = False,
    sequence: bool = False,
    command: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> ExtractionOutcome:
    """Extract features from the media of a manifest into a feature file.

    Output, weights and extractors are checked before the first clip is decoded. Extractors of the user are tested
    on noise.

    If `audio`, `visual`, `text` or `recipe` names an extractor, only the modalities of named extractors are
    extracted. Otherwise, the extractors are `log-mel` for sound and `hog-color` for pictures. A modality that every
    clip lacks is not written. A clip that lacks only some of the modalities (a silent video) is kept, with a mask.

    Args:
        manifest: a CSV file with the columns id,media,label,split or id,audio,visual,label,split. The columns start
            and end (seconds) cut a segment of the media. A table that contains the media is also valid: a Parquet
            file, a WebDataset tar, a data set saved by `datasets`, or "hf:NAME". CSV files, Parquet files and tars
            may also be at an address such as "s3://bucket/clips.csv".
        output: feature file to write. The same call continues an interrupted job.
        audio: audio extractor: a name of `EXTRACTORS`, an import path `package.module:name`, or `hf:MODEL`. "none"
            excludes sound from the default extractors.
        visual: visual extractor, with the same kinds of values as `audio`.
        text: extractor of the texts in the column text or caption, with the same kinds of values as `audio`; by
            default none.
        recipe: preset of the audio and visual extractors with their options (`aadml list feature-recipes`). Options
            and weights that are passed override those of the preset.
        options: options of the extractors, by modality: `{"audio": {"variant": "pca"}}`.
        weights: source of the weights, for extractors with weights: "auto" (the published file), the name of a
            published file, a file or its folder, or "untrained" (random values).
        windows: length, or length/step, of the clips that each recording is cut into: "10s" or "10s/5s". Their ids
            are `ID@10.0-20.0`, and the columns start, end (seconds) and recording are added. A last window shorter
            than half of the length is left out. A recording shorter than the length is one clip.
        engine: decoding engine: "local", "ray" (this machine, or RAY_ADDRESS), or "ray:ADDRESS" for a running
            cluster.
        workers: number of decoding processes; by default one per processor.
        time_limit: limit on the processor time to decode one modality of a clip, in seconds.
        max_seconds: maximum length of a clip (a window, or a segment of the manifest), in seconds; longer clips
            fail.
        damaged: "keep" skips damaged parts of a clip, with a warning, if at least half of its length can be
            decoded. "drop" makes a damaged clip fail.
        shard: (i, n), with i from 0, for shard i of n. The file of a shard is `<stem>.<i>-of-<n><suffix>`, and
            `aadml merge` merges the shards.
        retry_failed: whether failed clips are tried again.
        sequence: whether the features over time are kept beside the pooled features.
        command: command that continues the job, printed by `aadml status`.
        progress: called with the numbers of clips done and failed.

    Returns:
        The path of the file, counts, failures with their reasons, and warnings.

    Raises:
        InputError: an invalid manifest, argument or option, an extractor failing on noise, unavailable weights, a
            transformation that cannot be fitted, or an output that cannot be written or is a feature file of other
            clips.
    """
    require_seconds("max seconds", max_seconds)
    if damaged not in get_args(Damaged):
        raise InputError(f"damaged is {damaged!r}; pass {' or '.join(get_args(Damaged))}")
    rows = manifest if isinstance(manifest, Manifest) else open_manifest(manifest)
    if not is_remote(rows.path):
        search_beside(Path(rows.path))
    place = shard_path(output, shard)
    if place != Path(output):
        refuse_links(place)
    refuse_foreign(place)
    names = (name for row in rows.rows for name in (row.id, row.columns.get(RECORDING, row.id)))
    refuse_other_clips(place, names, rows.path)
    engine_of(engine)
    extractors = choose_extractors({"audio": audio, "visual": visual, "text": text}, options, weights, recipe, rows)
    for each in extractors:
        try_out(each, sequence=sequence)
    if windows is not None:
        rows = windowed(rows, read_windows(windows), workers)
    plan = ExtractionPlan(
        rows, place, extractors, engine=engine, workers=workers, time_limit=time_limit,
        limits=Limits(seconds=max_seconds, damaged=damaged), shard=shard, retry_failed=retry_failed, sequence=sequence,
        command=command,
    )  # fmt: skip
    return execute(plan, progress)


def choose_extractors(
    names: Mapping[str, str | None],
    options: Options | None = None,
    weights: str | None = None,
    recipe: str | None = None,
    manifest: Manifest | None = None,
) -> list[Extractor]:
    """Build extractors by name, each with its options; see `extract`.

    With `recipe`, the provenance of the extractors includes the recipe.

    Args:
        names: names by modality; None for a modality without a name. If no extractor is named, DEFAULTS are used,
            except for modalities with the name "none".
        options: options by modality.
        weights: source of the weights, for the extractors with an option `weights`; see `extract`.
        recipe: a key of RECIPES, instead of the names for sound and pictures.
        manifest: clips of the job. The default extractors for media in the manifest are built; without such media,
            all default extractors are built.

    Raises:
        InputError: an invalid name, option or recipe, a recipe together with an extractor of sound or pictures, the
            exclusion of every modality, options or weights that no extractor accepts, or unavailable weights.
    """
    if recipe is not None:
        if any(names.get(modality) for modality in DEFAULTS):
            raise InputError(
                f"extract: --recipe {recipe} sets the extractors of sound and pictures, so --audio and --visual cannot "
                "be passed; leave both out"
            )
        named = lookup(RECIPES, recipe, "recipe of features")
        if weights is None and not options:
            fetch(named.weights)  # all files before the first network is built
        both = {**names, "audio": named.audio, "visual": named.visual}
        extractors = choose_extractors(both, named.with_options(options, weights=weights), weights)
        return [replace(each, about={**each.about, "recipe": recipe}) for each in extractors]
    if options is not None and not (
        isinstance(options, Mapping) and all(isinstance(v, Mapping) for v in options.values())
    ):
        raise InputError(f'options are {options!r:.80}; pass options by modality, as in {{"audio": {{"hop": 0.5}}}}')
    settings = {modality: dict(values) for modality, values in (options or {}).items() if values}
    chosen = named_extractors(names) or _default_extractors(names, manifest)
    for modality in sorted(set(settings) - set(chosen)):
        raise InputError(
            f"{modality}.{next(iter(settings[modality]))}: this job has no {modality} extractor; leave the option out"
        )
    takers = [m for m, name in chosen.items() if "weights" in options_of(name, m)]
    if weights is not None and not takers:
        raise InputError(
            f"weights {weights}: none of {', '.join(chosen.values())} accepts weights; leave the weights out"
        )
    for modality in takers:
        if weights is not None:
            settings.setdefault(modality, {}).setdefault("weights", weights)
    _check_networks(chosen)
    return [extractor(name, modality, settings.get(modality)) for modality, name in chosen.items()]


def _check_networks(chosen: Mapping[str, str]) -> None:
    """Check the pretrained networks of several modalities, before the weights of the first network are read."""
    networks = {modality: name for modality, name in chosen.items() if name.startswith(PREFIX)}
    if len(networks) > 1:
        from aadml.feature_extraction.hub.towers import check_tower  # late, as torch is imported

        for modality, name in networks.items():
            check_tower(name, modality)


def named_extractors(names: Mapping[str, str | None]) -> dict[str, str]:
    """Return the extractor names that are neither None nor "none", by modality."""
    return {modality: name for modality, name in names.items() if name is not None and name != NONE}


def _default_extractors(names: Mapping[str, str | None], manifest: Manifest | None) -> dict[str, str]:
    chosen = {modality: name for modality, name in DEFAULTS.items() if names.get(modality) != NONE}
    if not chosen:
        raise InputError("audio none, visual none: nothing is left to extract; pass the extractor of a modality")
    rows = manifest.rows if manifest is not None else ()
    listed = {modality: name for modality, name in chosen.items() if any(row.media.get(modality) for row in rows)}
    return listed or chosen
