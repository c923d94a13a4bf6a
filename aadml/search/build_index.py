"""Construction and update of an index.

New and changed clips are embedded, removed clips are deleted, and maps and calibrations are computed, in one
transaction.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from aadml.comparison.features import Modality
from aadml.comparison.options import Count
from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.atomic import refuse_other_kind, target_of
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.options import Options
from aadml.feature_extraction.ground.strings import Note
from aadml.feature_extraction.jobs.job import DEFAULTS, NONE, choose_extractors, named_extractors
from aadml.model.facts import difference
from aadml.model.media import fingerprint_of
from aadml.model.model import Model
from aadml.search.captions import Known, known_items
from aadml.search.checksums import check_all
from aadml.search.encoders import (
    IndexEncoder,
    ModelEncoder,
    extractors_of,
    fitted_encoder,
    load_encoder,
    model_encoder,
)
from aadml.search.facts import IndexFacts, ModelReference, SourceRecord, StateRecord, located, near, read_facts
from aadml.search.fit_calibration import calibrate_index, other_clips
from aadml.search.raw_media import of_raw_media
from aadml.search.sources import (
    IndexSource,
    Work,
    accepted,
    check_extraction,
    has_texts,
    is_media,
    is_readable,
    of_features,
    of_media,
)
from aadml.search.store import check_writable, connect, is_index, only_writer, reading, writing
from aadml.search.updates import Changes, write


@dataclass(frozen=True)
class _Extraction:
    """Arguments of `build` that select the extractors of an index without a model."""

    names: Mapping[str, str | None]
    options: Options | None
    weights: str | None


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
    workers: Count | None = None,
    calibrate: str | Path | None = None,
    precision: float | None = None,
    trust_code: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Changes:
    """Build an index, or update it from its source.

    The next call resumes a build that was killed. Extraction stores its results in `<output>.work`, and the clips are
    written in one transaction. Clips are compared by id and content. The arguments of an update must agree with the
    index.

    Args:
        source: a feature file, a manifest, or a folder of media.
        output: index file to write.
        model: run or model folder (in Python also a saved model); without a model, the features themselves are indexed.
        audio: audio extractor of an index without a model. If no extractor is named, the default is log-mel. If any
            extractor is named, only the modalities of named extractors are indexed. "none" excludes audio from the
            default.
        visual: visual extractor of an index without a model. If no extractor is named, the default is hog-color.
        options: options of these extractors, by modality. An update may leave the extractors and their options out.
        weights: source of the weights, for extractors with weights: "auto", a file, or "untrained".
        media: manifest with the media of the clips of a feature file.
        moments: keep features over time, so that a hit has its best moment. An update of an index with moments keeps
            the moments.
        allow_other_features: accept features of an extractor other than that of the model's training features.
        workers: number of decoding processes; by default one per processor.
        calibrate: feature file whose validation clips fit the probabilities; by default the file of the last
            calibration, or the index itself.
        precision: requested share of relevant hits among the best hits above the probability threshold; by default the
            share of the last calibration, or 0.9. The threshold is fitted on validation clips. Without a hit at or
            above the threshold, a search reports that no hit is certain.
        trust_code: import the code from outside aadml that the index or its model names as `module:name`.
        progress: called with a description of the work ("audio of 20") and the numbers of clips done and failed.
        on_note: called with notes for the user.

    Returns:
        The numbers of new, changed and removed clips. The result also lists the files that could not be read.

    Raises:
        InputError: an argument is invalid, has no effect or differs from the index. Other causes: a source, model or
            index that cannot be read, no clip that can be indexed, or an update of the index by another process.
    """
    path, extraction = target_of(Path(output)), _Extraction({"audio": audio, "visual": visual}, options, weights)
    if precision is not None and not 0 < precision < 1:
        raise InputError(f"precision: {precision:g} is not between 0 and 1; pass a share above 0 and below 1")
    of_media = is_media(source)
    _refuse_paths(source, calibrate, path)
    with only_writer(path) as folder:
        facts, known = _written(path, source) if path.exists() else (None, None)
        has_model = model is not None or (facts is not None and isinstance(facts.encoder, ModelReference))
        _refuse_idle(extraction, media, allow_other_features, has_model=has_model, of_media=of_media)
        origin = _origin(source, path, media, moments, facts)
        encoder = _encoder(path, model, facts)
        if calibrate is not None and encoder is not None:
            other_clips(encoder, calibrate)
        if of_media:
            work = Work(folder, workers, origin.moments is not None, progress, on_note)
            clips = _of_media(source, path, extraction, encoder, work, calibrate)
        else:
            clips = _of_features(source, path, origin, encoder, allow_other_features, on_note)
        if encoder is None:
            encoder = fitted_encoder({m: some.features for m, some in clips.present.items()}, clips.origins)
            if calibrate is not None:
                other_clips(encoder, calibrate)
        if facts is None:
            facts = IndexFacts(origin, encoder.record(path.parent), StateRecord(1, encoder.similarity))
        notes: list[str] = []
        with ExitStack() as stack:
            begin = cache(lambda: stack.enter_context(writing(path, is_new=known is None)))
            facts, changes = write(begin, replace(facts, source=origin), clips, encoder, known)
            calibrate_index(begin, path.parent, facts, calibrate, encoder, precision, notes.append)
    if on_note:
        for note in notes:
            on_note(note)
    return changes


def _refuse_paths(source: str | Path, calibrate: str | Path | None, path: Path) -> None:
    """Raise InputError for a missing input file, or an output that cannot be a file."""
    if not is_readable(source):
        raise InputError(f"{source} does not exist; pass a feature file, a manifest or a folder of media")
    if calibrate is not None and not is_readable(calibrate):
        raise InputError(f"calibrate: {calibrate} does not exist; pass a feature file with validation clips")
    refuse_other_kind(path, "an index", is_index)


def _refuse_idle(
    extraction: _Extraction, media: str | Path | None, allow_other_features: bool, *, has_model: bool, of_media: bool
) -> None:
    """Raise InputError if an argument would have no effect."""
    unused = {name for name, value in extraction.names.items() if value is not None}
    unused |= {name for name in ("options", "weights") if getattr(extraction, name)}
    if media is not None and of_media:
        raise InputError("index: the source has the media of its clips; leave out media")
    if unused and (has_model or not of_media):
        why = "the model determines the extractors" if has_model else "the source has features already"
        raise InputError(f"index: {why}; leave out {', '.join(sorted(unused))}")
    if allow_other_features and (of_media or not has_model):
        raise InputError(
            "index: allow_other_features applies only to a feature file with a model; "
            "pass a feature file and a model, or leave out allow_other_features"
        )


def _written(path: Path, source: str | Path) -> tuple[IndexFacts, Known]:
    """Return the facts of an index, and the digests of its items.

    Raises:
        InputError: the file cannot be read as an index, or the index has another source.
    """
    with closing(connect(path)) as database, reading(database, path):
        check_all(database)
        facts, known = read_facts(database, path), known_items(database)
    before = located(facts.source.path, path.parent)
    if near(before, path.parent) != near(source, path.parent):
        raise InputError(
            f"{path} is the index of {before}, not of {shown_address(source)}; pass another output, or remove the index"
        )
    return facts, known


def _origin(
    source: str | Path, path: Path, media: str | Path | None, moments: bool, facts: IndexFacts | None
) -> SourceRecord:
    """Return the source record of an index.

    An existing index keeps its moments, and keeps its media manifest unless `media` is passed.
    """
    before = SourceRecord("") if facts is None else facts.source
    manifest = before.media if media is None else near(media, path.parent)
    return SourceRecord(near(source, path.parent), manifest, "kept" if moments else before.moments)


def _encoder(path: Path, model: Model | str | Path | None, facts: IndexFacts | None) -> IndexEncoder | None:
    """Return the encoder of an index or of a model; None for a new index without a model.

    Raises:
        InputError: the model cannot be loaded, or the index was built with another model.
    """
    if facts is None:
        return None if model is None else model_encoder(model)
    return load_encoder(facts.encoder, path.parent, model)


def _selected(path: Path, extraction: _Extraction, known: Mapping[Modality, JsonObject]) -> dict[Modality, Extractor]:
    """Build the extractors that the arguments of an update select.

    Args:
        path: path of the index.
        extraction: arguments of the update.
        known: fingerprints of the extractors of the index, by modality.

    Raises:
        InputError: the arguments select other extractors than those of the index, or not all of them.
    """
    for modality, name in extraction.names.items():
        if name is not None and (name == NONE) == (modality in known):
            built = f"with {known[modality].get('extractor')}" if name == NONE else f"without {modality}"
            raise InputError(
                f"--{modality} {name}: {path} was built {built}; omit --{modality}, or build another index"
            )
    if not named_extractors(extraction.names):
        if not (extraction.options or extraction.weights):
            return {}
        built_with = {modality: str(fingerprint.get("extractor")) for modality, fingerprint in known.items()}
        if not built_with.items() <= DEFAULTS.items():
            raise InputError(
                f"index: {path} was built with {', '.join(built_with.values())}; pass its extractors "
                f"({', '.join(f'--{modality}' for modality in known)}) with their options and weights, or omit these"
            )
    selected = choose_extractors(extraction.names, extraction.options, extraction.weights)
    for extractor in selected:
        expected = known.get(extractor.modality)
        if expected and (other := difference(expected, fingerprint_of(extractor))):
            raise InputError(
                f"index: the {extractor.modality} features would be computed by {other} in {path}; "
                "omit the extractors and their options, or build another index"
            )
    return {extractor.modality: extractor for extractor in selected if known.get(extractor.modality)}


def _of_media(
    place: str | Path,
    path: Path,
    extraction: _Extraction,
    encoder: IndexEncoder | None,
    work: Work,
    calibrate: str | Path | None,
) -> IndexSource:
    """Read media: as vectors for a model that decodes files itself, otherwise as features.

    Raises:
        InputError: a write-protected index, a choice of extractors that differs from the index, or unreadable media.
    """
    check_writable(path)
    if isinstance(encoder, ModelEncoder) and not any(encoder.facts.dimensions.values()):
        if work.moments:
            raise InputError(
                "--moments: this model embeds clips as a whole, without features over time; omit --moments"
            )
        return of_raw_media(place, path, encoder, work)
    if encoder is not None:
        selected = _selected(path, extraction, encoder.facts.features)
        return of_media(place, path, extractors_of(encoder, texts=has_texts(place), built=selected), work)
    extractors = choose_extractors(extraction.names, extraction.options, extraction.weights)
    if calibrate is not None:
        widths = {extractor.modality: extractor.dimension for extractor in extractors}
        check_extraction(of_features(calibrate, Path(calibrate)), widths, {}, shown_address(calibrate))
    return of_media(place, path, extractors, work)


def _of_features(
    place: str | Path, path: Path, origin: SourceRecord, encoder: IndexEncoder | None, allow: bool, on_note: Note | None
) -> IndexSource:
    """Read a feature file: the modalities of the encoder, or without an encoder all modalities that an index stores."""
    media = None if origin.media is None else located(origin.media, path.parent)
    clips = of_features(place, path, media, moments=origin.moments is not None)
    assert clips.content is not None
    if media is not None and on_note and not any(item.media for item in clips.items):
        on_note(f"no clip of {shown_address(place)} has media in {media}; pass the manifest of its clips with --media")
    left = [modality for modality in clips.content.features if modality not in clips.present]
    if left and on_note:
        on_note(f"an index stores only {', '.join(MODALITIES)}; these modalities are left out: {', '.join(left)}")
    return clips if encoder is None else accepted(clips, encoder, shown_address(place), allow=allow, on_note=on_note)
