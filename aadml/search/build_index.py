"""Building and updating an index: what is new or changed is embedded, what is gone is removed, in one transaction."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from aadml.data.reading import SYNTHETIC
from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.argument_types import checked_call
from aadml.feature_extraction.ground.consent import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import typed
from aadml.feature_extraction.jobs.job import Options, choose_extractors, named_extractors
from aadml.methods.inputs import SCALINGS, Inputs, Scaling
from aadml.model.model import Model
from aadml.runs.model_data import check_features
from aadml.search.build_ivf import approximate_index
from aadml.search.encoders import (
    IndexEncoder,
    ModelEncoder,
    extractors_of,
    load_encoder,
    model_encoder,
    near,
    plain_encoder,
)
from aadml.search.fit_calibration import calibrate_index
from aadml.search.items import digests_of, meta_of
from aadml.search.raw_media import of_raw_media
from aadml.search.sources import IndexSource, Work, is_media, of_features, of_media
from aadml.search.store import connect, only_writer, reading
from aadml.search.updates import Changes, write


@dataclass(frozen=True, kw_only=True)
class _Choices:
    """How an index is made; see `build`."""

    model: Model | str | Path | None
    audio: str | None
    visual: str | None
    options: Options | None
    weights: str | None
    media: str | Path | None
    moments: bool
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
    """Make an index, or bring one up to date with its source.

    Whatever is killed on the way goes on where it was: extraction keeps its work in `<output>.work`, and the index
    itself is written in one transaction. Clips are known again by their content. On an update, what is given must agree
    with what the index says.

    Args:
        source: a feature file, a manifest, or a folder of media.
        output: the index.
        model: a model, or the path of a run or model folder; None: features as they are.
        audio: name of the audio extractor where there is no model; only the modalities that are named are indexed, and
            both, by `log-mel` and `hog-color`, without any name. "none" leaves sound out of these.
        visual: of the visual extractor, alike.
        options: of these extractors, by modality.
        weights: "auto", a file, or "untrained", for extractors that take weights.
        media: a manifest that says where the media of a feature file are.
        moments: keep descriptions over time, so that a hit names its best moment; an index that has them keeps them.
        allow_other_features: take features of another extractor than the model was trained on.
        workers: decoding processes; None: one a processor.
        calibrate: a feature file whose validation clips the probabilities are fitted on; by default the source's own.
        precision: share of best hits that shall fit from the threshold on below which nothing is said to fit.
        approximate: recall of the ten best items that a search of a large index has to reach, looking at a part of it
            alone; see `aadml.search.ivf`. None: exact, or as before.
        trust_code: import the code from outside aadml that the index or its model names as `module:name`.
        progress: called with what is being extracted ("audio of 20") and the numbers of clips done and failed.
        on_note: called with notes for the user.

    Raises:
        InputError: nothing to index, an index that was made otherwise, or another process that is at it.
    """
    path = Path(output)
    choices = _Choices(
        model=model, audio=audio, visual=visual, options=options, weights=weights, media=media,
        moments=moments, allow_other_features=allow_other_features, workers=workers, progress=progress, on_note=on_note,
    )  # fmt: skip
    if not 0 < precision < 1:
        raise InputError(f"precision: {precision:g} given; above 0 and below 1 is possible")
    if approximate is not None and not 0 < approximate < 1:
        raise InputError(f"approximate: {approximate:g} given; a recall above 0 and below 1 is possible")
    _refuse_idle(choices, of_media=is_media(source))
    if not str(source).startswith(SYNTHETIC) and not Path(source).exists():
        raise InputError(f"{source}: no such file or folder")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of the index file to write")
    with only_writer(path) as work:
        changes = _update(path, source, choices, work) if path.exists() else _create(path, source, choices, work)
        calibrate_index(path, calibrate, model=model, precision=precision, on_note=on_note)
        approximate_index(path, approximate, model=model, on_note=on_note)
        if not is_media(source):
            shutil.rmtree(work, ignore_errors=True)  # nothing is kept there but the lock
    return changes


def _refuse_idle(choices: _Choices, *, of_media: bool) -> None:
    """Refuse what was given and would change nothing."""
    extractors = {"audio": choices.audio, "visual": choices.visual}
    given = set(named_extractors(extractors))
    given |= {name for name, one in {"options": choices.options, "weights": choices.weights}.items() if one}
    if given and (choices.model is not None or not of_media):
        why = "the model names the extractors" if choices.model is not None else "the source has features already"
        raise InputError(f"index: {why}; leave out {', '.join(sorted(given))}")
    if choices.allow_other_features and (choices.model is None or of_media):
        raise InputError("index: allow_other_features is for features that a model takes; give both")


def _create(path: Path, place: str | Path, choices: _Choices, work: Path) -> Changes:
    encoder = None if choices.model is None else model_encoder(choices.model)
    source = _read(path, place, choices, work, encoder)
    chosen = encoder or plain_encoder(
        source.origins, {m: one.features for m, one in source.present.items()}, _fit(source)
    )
    facts = {"path": _place(place, path)}
    if choices.media is not None:
        facts["media"] = near(choices.media, path.parent)
    if choices.moments:
        facts["moments"] = "kept"
    return write(path, facts, source, chosen, {}, None)


def _update(path: Path, place: str | Path, choices: _Choices, work: Path) -> Changes:
    with closing(connect(path)) as database, reading(database, path):
        meta, digests = meta_of(database), digests_of(database)
    before = str(path.parent / typed(meta["source"], "path", str))
    if near(before, path.parent) != _place(place, path):
        raise InputError(f"{path}: is the index of {before}; give another -o for {place}, or remove it first")
    if choices.media is None and "media" in meta["source"]:
        choices = replace(choices, media=path.parent / typed(meta["source"], "media", str))
    choices = replace(choices, moments=choices.moments or "moments" in meta["source"])
    encoder = load_encoder(meta["encoder"], path.parent, choices.model)
    _same_extractors(encoder, choices, path)
    source = _read(path, place, choices, work, encoder)
    origin = {**meta["source"], **({"moments": "kept"} if choices.moments else {})}
    return write(path, origin, source, encoder, digests, meta)


def _place(place: str | Path, path: Path) -> str:
    return str(place) if str(place).startswith(SYNTHETIC) else near(place, path.parent)


def _fit(source: IndexSource) -> Scaling:
    """Scale by the items of the first build; there is nothing else to fit on."""
    statistics = {m: SCALINGS["standard"](one.features) for m, one in source.present.items()}
    inputs = Inputs()
    return Scaling({m: s[0] for m, s in statistics.items()}, {m: s[1] for m, s in statistics.items()}, inputs.clamp)


def _same_extractors(encoder: IndexEncoder, choices: _Choices, path: Path) -> None:
    """Refuse extractors other than those of the index."""
    if isinstance(encoder, ModelEncoder):
        return
    known = {str(m): origin.get("extractor") for m, origin in encoder.facts.features.items()}
    for modality, name in named_extractors({"audio": choices.audio, "visual": choices.visual}).items():
        if known.get(modality) != name:
            raise InputError(f"--{modality} {name}: {path} was made with {known.get(modality)}; build another index")


def _read(path: Path, place: str | Path, choices: _Choices, work: Path, encoder: IndexEncoder | None) -> IndexSource:
    """Read the source, as the encoder takes it."""
    if not is_media(place):
        source = of_features(place, path, choices.media, moments=choices.moments)
        _say_left_out(source, choices)
        if isinstance(encoder, ModelEncoder):
            source = _checked(source, encoder, str(place), choices)
        return source
    job = Work(work, choices.workers, choices.moments, choices.progress)
    if isinstance(encoder, ModelEncoder) and not any(encoder.facts.dimensions.values()):
        if choices.moments:
            raise InputError("--moments: this model hears and sees clips as a whole; nothing is kept over time")
        return of_raw_media(place, path, encoder, job)
    return of_media(place, path, _extractors(encoder, choices), job)


def _say_left_out(source: IndexSource, choices: _Choices) -> None:
    assert source.content is not None
    left = [modality for modality in source.content.features if modality not in source.present]
    if left and choices.on_note:
        choices.on_note(f"an index holds {', '.join(MODALITIES)}; left out: {', '.join(left)}")


def _extractors(encoder: IndexEncoder | None, choices: _Choices) -> Sequence[Extractor]:
    if encoder is not None:
        return extractors_of(encoder)
    return choose_extractors({"audio": choices.audio, "visual": choices.visual}, choices.options, choices.weights)


def _checked(source: IndexSource, encoder: ModelEncoder, place: str, choices: _Choices) -> IndexSource:
    """Keep the modalities that the model embeds, and check that they are what it was trained on."""
    assert source.content is not None
    kept = {m: one for m, one in source.present.items() if m in encoder.model.modalities}
    if not kept:
        raise InputError(
            f"{place}: has {', '.join(source.present)}; the model embeds {', '.join(encoder.model.modalities)}"
        )
    check_features(
        encoder.model, source.content, place, allow=choices.allow_other_features, on_note=choices.on_note,
        modalities=list(kept),
    )  # fmt: skip
    return IndexSource(source.items, kept, source.origins, source.failures, source.content)
