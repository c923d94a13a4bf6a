"""Extraction by names: a manifest's path and the names of extractors, as on the command line."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from aadml.feature_extraction.backbones import Extractor, extractor, options_of
from aadml.feature_extraction.feature_file import Incomplete
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.jobs.extract import ExtractionOutcome
from aadml.feature_extraction.jobs.extract import extract as carry_out
from aadml.feature_extraction.jobs.recipes import RECIPES
from aadml.feature_extraction.jobs.shard_names import shard_path
from aadml.feature_extraction.manifest import Manifest, read_manifest
from aadml.feature_extraction.media import Limits

Options = Mapping[str, JsonObject]
"""Modality -> option of its extractor -> value."""

DEFAULTS = {"audio": "log-mel", "visual": "hog-color"}
"""Extractors of a job that names none; they need no weights."""

NONE = "none"
"""In the place of an extractor: the modality is left out of DEFAULTS."""


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
    engine: str = "local",
    workers: int | None = None,
    time_limit: float = 120.0,
    max_seconds: float = 3600.0,
    shard: tuple[int, int] = (0, 1),
    retry_failed: bool = False,
    sequence: bool = False,
    incomplete: Incomplete = "keep",
    command: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> ExtractionOutcome:
    """Turn a manifest of media into a feature file.

    Only the modalities that are named are described. Without any name, sound is described by `log-mel` and pictures by
    `hog-color`. A modality that every clip lacks is not written.

    Args:
        manifest: a CSV file with the columns id,media,label,split or id,audio,visual,label,split.
        output: the feature file to make. The same call continues a job that was interrupted.
        audio: name of the audio extractor, `package.module:name`, or `hf:MODEL`; "none" leaves sound out of what is
            described without any name.
        visual: of the visual extractor, alike.
        text: of the text extractor, alike, for manifests with a column `text` or `caption`.
        recipe: a key of RECIPES, in the place of both names; `options` and `weights` are laid over its own.
        options: of the extractors, by modality: `{"audio": {"variant": "pca"}}`.
        weights: "auto" (the published ones), a file, or "untrained", for the extractors that take weights.
        engine: where clips are decoded: "local", "ray", or "ray:ADDRESS" for a cluster that runs already.
        workers: decoding processes; None: one a processor.
        time_limit: seconds that decoding one clip may take.
        max_seconds: longer clips are refused.
        shard: (i, n): only part i of n, written as `<stem>.<i>-of-<n>.h5`; `aadml merge` joins them.
        retry_failed: try again the clips that failed before.
        sequence: keep descriptions over time beside the pooled ones.
        incomplete: "keep" clips that lack a modality (a silent video) and have another, masked, or "drop" them: they
            are then failures.
        command: what to type to go on with the job; `aadml status` says it.
        progress: called with the number of clips done and failed so far.

    Returns:
        What the job came to: counts, failures with their reasons, remarks.

    Raises:
        InputError: a manifest, name or option that is wrong, or an output that cannot be written.
    """
    rows = manifest if isinstance(manifest, Manifest) else read_manifest(manifest)
    search_beside(Path(rows.path))
    names = {"audio": audio, "visual": visual, "text": text}
    extractors = choose_extractors(names, options, weights, recipe, rows)
    limits = Limits(seconds=max_seconds)
    return carry_out(
        rows, shard_path(output, shard), extractors, engine=engine, workers=workers, time_limit=time_limit,
        limits=limits, shard=shard, retry_failed=retry_failed, sequence=sequence, incomplete=incomplete,
        command=command, progress=progress,
    )  # fmt: skip


def choose_extractors(
    names: Mapping[str, str | None],
    options: Options | None = None,
    weights: str | None = None,
    recipe: str | None = None,
    manifest: Manifest | None = None,
) -> list[Extractor]:
    """Build extractors by name, each with its options; see `extract`. What they make says by which recipe.

    Args:
        names: by modality; None for a modality that is not named. Without any name, DEFAULTS.
        options: by modality.
        weights: for those that take weights.
        recipe: a key of RECIPES, in the place of the names of sound and picture.
        manifest: without any name, only the modalities for which it lists media are taken.

    Raises:
        InputError: an unknown name or option, or options or weights that none of the extractors takes.
    """
    if recipe is not None:
        if any(names.get(modality) for modality in DEFAULTS):
            raise InputError("extract: --recipe names both extractors; leave --audio and --visual out")
        named = lookup(RECIPES, recipe, "recipe of features")
        both = {**names, "audio": named.audio, "visual": named.visual}
        extractors = choose_extractors(both, named.with_options(options, weights=weights), weights)
        return [replace(each, about={**each.about, "recipe": recipe}) for each in extractors]
    if options is not None and not (
        isinstance(options, Mapping) and all(isinstance(v, Mapping) for v in options.values())
    ):
        raise InputError(f'options: {options!r} given; options by modality are wanted, {{"audio": {{"hop": 0.5}}}}')
    settings = {modality: dict(values) for modality, values in (options or {}).items()}
    chosen = named_extractors(names) or _default_extractors(names, manifest)
    for modality in sorted(set(settings) - set(chosen)):
        raise InputError(f"{modality}.{next(iter(settings[modality]))}: there is no {modality} extractor in this job")
    takers = [m for m, name in chosen.items() if "weights" in options_of(name, m)]
    if weights is not None and not takers:
        raise InputError(f"weights {weights}: none of {', '.join(chosen.values())} takes weights")
    for modality in takers:
        if weights is not None:
            settings.setdefault(modality, {}).setdefault("weights", weights)
    return [extractor(name, modality, settings.get(modality)) for modality, name in chosen.items()]


def named_extractors(names: Mapping[str, str | None]) -> dict[str, str]:
    """Return the names of extractors by modality, without the modalities that are not named or "none"."""
    return {modality: name for modality, name in names.items() if name is not None and name != NONE}


def _default_extractors(names: Mapping[str, str | None], manifest: Manifest | None) -> dict[str, str]:
    chosen = {modality: name for modality, name in DEFAULTS.items() if names.get(modality) != NONE}
    if not chosen:
        raise InputError("audio none, visual none: nothing is left to describe; name the extractor of a modality")
    rows = manifest.rows if manifest is not None else ()
    listed = {modality: name for modality, name in chosen.items() if any(row.media.get(modality) for row in rows)}
    return listed or chosen
