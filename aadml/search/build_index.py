"""Build and update an index: embed new and changed clips and delete removed clips, in one transaction."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from aadml.data.reading import SYNTHETIC
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.argument_types import checked_call
from aadml.feature_extraction.ground.consent import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import typed
from aadml.feature_extraction.jobs.job import Options, choose_extractors, named_extractors
from aadml.methods.inputs import SCALINGS, Inputs, Scaling
from aadml.model.model import Model
from aadml.search.checksums import check_all
from aadml.search.encoders import (
    IndexEncoder,
    ModelEncoder,
    extractors_of,
    load_encoder,
    model_encoder,
    near,
    plain_encoder,
)
from aadml.search.fit_calibration import calibrate_index, check_widths, other_clips
from aadml.search.items import digests_of, meta_of
from aadml.search.ivf import approximate_index
from aadml.search.raw_media import of_raw_media
from aadml.search.sources import IndexSource, Work, accepted, is_media, of_features, of_media
from aadml.search.store import connect, only_writer, reading
from aadml.search.updates import Changes, write


@dataclass(frozen=True, kw_only=True)
class _Choices:
    """Settings of building an index; see `build`."""

    model: Model | str | Path | None
    audio: str | None
    visual: str | None
    options: Options | None
    weights: str | None
    media: str | Path | None
    moments: bool
    calibrate: str | Path | None
    allow_other_features: bool
    workers: int | None
    progress: Callable[[str, int, int], None] | None
    on_note: Callable[[str], None] | None


@checked_call
@with_consent("output")
def build(
    source: str | Path,
    output: str | Path,
    *,
    model: Model | str | Path | None = None,
    audio: str | None = None,
    visual: str | None = None,
    options: Options | None = None,
    weights: str | None = None,
    media: str | Path | None = None,
    moments: bool = False,
    allow_other_features: bool = False,
    workers: int | None = None,
    calibrate: str | Path | None = None,
    precision: float = 0.9,
    approximate: float | None = None,
    trust_code: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Changes:
    """Build an index, or update it from its source.

    A build that was killed is resumed by the next call: extraction keeps its work in `<output>.work`, and the index is
    written in one transaction. Clips are recognized by their content. The arguments of an update must agree with the
    index.

    Args:
        source: a feature file, a manifest, or a folder of media.
        output: the index file.
        model: a model, or the path of a run or model folder; None indexes the features themselves.
        audio: name of the audio extractor if there is no model. If any extractor is named, only the modalities of named
            extractors are indexed; the default is `log-mel` and `hog-color`. "none" excludes audio from the default.
        visual: name of the visual extractor; as `audio`.
        options: options of these extractors, by modality.
        weights: "auto", a file, or "untrained", for extractors that have weights.
        media: a manifest with the media of the clips of a feature file.
        moments: keep features over time, so that a hit has its best moment; an index that has moments keeps them.
        allow_other_features: accept features of another extractor than the model was trained on.
        workers: decoding processes; None starts one per processor.
        calibrate: a feature file with validation clips for fitting probabilities; by default those of `source`.
        precision: share of best hits above the threshold that fit. If no hit reaches the threshold, a search reports
            that nothing fits.
        approximate: recall@10 of approximate search in a large index (see `aadml.search.ivf`). None searches exactly,
            or keeps the recall of the index.
        trust_code: import the code from outside aadml that the index or its model names as `module:name`.
        progress: called with a description of the work ("audio of 20") and the numbers of clips done and failed.
        on_note: called with notes for the user.

    Raises:
        InputError: there is nothing to index, the arguments differ from those of the index, or another process updates
            the index.
    """
    path = Path(output)
    choices = _Choices(
        model=model, audio=audio, visual=visual, options=options, weights=weights, media=media,
        moments=moments, calibrate=calibrate, allow_other_features=allow_other_features, workers=workers,
        progress=progress, on_note=on_note,
    )  # fmt: skip
    if not 0 < precision < 1:
        raise InputError(f"precision: {precision:g} is not between 0 and 1; pass a share above 0 and below 1")
    if approximate is not None and not 0 < approximate < 1:
        raise InputError(f"approximate: {approximate:g} is not between 0 and 1; pass a recall above 0 and below 1")
    _refuse_idle(choices, of_media=is_media(source))
    if not str(source).startswith(SYNTHETIC) and not Path(source).exists():
        raise InputError(f"{source}: no such file or folder; pass a feature file, a manifest or a folder of media")
    if calibrate is not None and not str(calibrate).startswith(SYNTHETIC) and not Path(calibrate).exists():
        raise InputError(f"calibrate: {calibrate}: no such file; pass a feature file with validation clips")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; pass the path of the index file to write")
    with only_writer(path) as work:
        write_index = _update if path.exists() else _create
        changes, encoder = write_index(path, source, choices, work)
        calibrate_index(path, calibrate, encoder, precision, on_note)
        approximate_index(path, approximate, encoder, on_note)
        if not is_media(source):
            shutil.rmtree(work, ignore_errors=True)  # contains only the lock
    return changes


def _refuse_idle(choices: _Choices, *, of_media: bool) -> None:
    """Raise InputError if an argument would have no effect."""
    unused = set(named_extractors({"audio": choices.audio, "visual": choices.visual}))
    unused |= {"options"} if choices.options else set()
    unused |= {"weights"} if choices.weights else set()
    if unused and (choices.model is not None or not of_media):
        why = "the model determines the extractors" if choices.model is not None else "the source has features already"
        raise InputError(f"index: {why}; leave out {', '.join(sorted(unused))}")
    if choices.allow_other_features and (choices.model is None or of_media):
        raise InputError("index: allow_other_features applies to a feature file and a model; pass both")


def _create(path: Path, place: str | Path, choices: _Choices, work: Path) -> tuple[Changes, IndexEncoder]:
    model = None if choices.model is None else model_encoder(choices.model)
    if choices.calibrate is not None and model is not None:
        other_clips(model, choices.calibrate)
    source = _read(path, place, choices, work, model)
    features = {m: some.features for m, some in source.present.items()}
    encoder = model or plain_encoder(source.origins, features, _fit(features))
    facts = {"path": _place(place, path)}
    if choices.media is not None:
        facts["media"] = near(choices.media, path.parent)
    if choices.moments:
        facts["moments"] = "kept"
    if choices.calibrate is not None and model is None:
        other_clips(encoder, choices.calibrate)
    return write(path, facts, source, encoder, {}, None), encoder


def _update(path: Path, place: str | Path, choices: _Choices, work: Path) -> tuple[Changes, IndexEncoder]:
    with closing(connect(path)) as database, reading(database, path):
        check_all(database)
        meta, digests = meta_of(database), digests_of(database)
    before = str(path.parent / typed(meta["source"], "path", str))
    if near(before, path.parent) != _place(place, path):
        raise InputError(f"{path}: is the index of {before}, not of {place}; pass another output, or remove the index")
    if choices.media is None and "media" in meta["source"]:
        choices = replace(choices, media=path.parent / typed(meta["source"], "media", str))
    choices = replace(choices, moments=choices.moments or "moments" in meta["source"])
    encoder = load_encoder(meta["encoder"], path.parent, choices.model)
    _same_extractors(encoder, choices, path)
    if choices.calibrate is not None:
        other_clips(encoder, choices.calibrate)
    source = _read(path, place, choices, work, encoder)
    origin = {**meta["source"], **({"moments": "kept"} if choices.moments else {})}
    return write(path, origin, source, encoder, digests, meta), encoder


def _place(place: str | Path, path: Path) -> str:
    return str(place) if str(place).startswith(SYNTHETIC) else near(place, path.parent)


def _fit(features: Mapping[str, Tensor]) -> Scaling:
    """Fit the scaling on the items of the first build."""
    statistics = {m: SCALINGS["standard"](values) for m, values in features.items()}
    return Scaling({m: s[0] for m, s in statistics.items()}, {m: s[1] for m, s in statistics.items()}, Inputs().clamp)


def _same_extractors(encoder: IndexEncoder, choices: _Choices, path: Path) -> None:
    """Raise InputError if a named extractor is not the one of the index."""
    if isinstance(encoder, ModelEncoder):
        return
    known = {str(m): origin.get("extractor") for m, origin in encoder.facts.features.items()}
    for modality, name in named_extractors({"audio": choices.audio, "visual": choices.visual}).items():
        if known.get(modality) != name:
            raise InputError(f"--{modality} {name}: {path} was built with {known.get(modality)}; build another index")


def _read(path: Path, place: str | Path, choices: _Choices, work: Path, encoder: IndexEncoder | None) -> IndexSource:
    """Read the source in the form that the encoder embeds."""
    if not is_media(place):
        source = of_features(place, path, choices.media, moments=choices.moments)
        _note_left_out(source, choices)
        if not isinstance(encoder, ModelEncoder):
            return source
        return accepted(source, encoder, str(place), allow=choices.allow_other_features, on_note=choices.on_note)
    job = Work(work, choices.workers, choices.moments, choices.progress)
    if isinstance(encoder, ModelEncoder) and not any(encoder.facts.dimensions.values()):
        if choices.moments:
            raise InputError(
                "--moments: this model embeds clips as a whole, without features over time; omit --moments"
            )
        return of_raw_media(place, path, encoder, job)
    if encoder is not None:
        return of_media(place, path, extractors_of(encoder), job)
    named = {"audio": choices.audio, "visual": choices.visual}
    extractors = choose_extractors(named, choices.options, choices.weights)
    if choices.calibrate is not None:
        widths = {extractor.modality: extractor.dimension for extractor in extractors}
        check_widths(of_features(choices.calibrate, Path(choices.calibrate)), widths, choices.calibrate)
    return of_media(place, path, extractors, job)


def _note_left_out(source: IndexSource, choices: _Choices) -> None:
    assert source.content is not None
    left = [modality for modality in source.content.features if modality not in source.present]
    if left and choices.on_note:
        choices.on_note(f"an index holds {', '.join(MODALITIES)}; left out: {', '.join(left)}")
