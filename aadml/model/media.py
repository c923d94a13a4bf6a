"""Media for a model: extracted by what made the features that it was trained on, then embedded."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from aadml.comparison.features import Features, Modality
from aadml.data.captions.cleaning import CLEANINGS
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.texts import Captions
from aadml.data.sources.waveforms import Waveforms
from aadml.feature_extraction.backbones import EXTRACTORS, Extractor, extractor, options_of
from aadml.feature_extraction.feature_file import read_features
from aadml.feature_extraction.ground.consent import UntrustedCodeError
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject, nested
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.jobs.extract import extract
from aadml.feature_extraction.manifest import Manifest, Row
from aadml.feature_extraction.weights.table import WEIGHTS, weights_path
from aadml.model.facts import Facts, difference, fingerprint

_CHECKSUM = re.compile("[0-9a-f]{64}")


def media_features(facts: Facts, modality: Modality, items: Sequence[str]) -> Features:
    """Read media files, or captions, as a model takes them.

    Args:
        facts: of the model.
        modality: of the items.
        items: paths; captions where the modality is text.

    Returns:
        Features (n, d), or sounds or captions as a source.

    Raises:
        InputError: a file that cannot be read, or an extractor that is not known, not installed or other than the
            model's.
    """
    if facts.dimensions[modality]:
        return describe_media(facts, modality, items)
    if modality == "text" and facts.towers is not None:
        return Captions(tuple(items))
    if modality == "text":
        clean = lookup(CLEANINGS, str(facts.method.arguments.get("cleaning", "mei")), "cleaning")
        return Captions(tuple(clean(text) for text in items))
    return raw_media(facts, items)


def raw_media(facts: Facts, paths: Sequence[str]) -> MediaFiles | Waveforms:
    """Lay out files for a model that decodes them itself.

    Raises:
        InputError: no such file.
    """
    for path in paths:
        _check_file(path)
    return (Waveforms if facts.towers is None else MediaFiles)(tuple(paths), torch.arange(len(paths)))


def describe_media(facts: Facts, modality: Modality, paths: Sequence[str]) -> Tensor:
    """Extract the features (n, d) of media, or of texts, as the model expects them; values are those of extraction."""
    for path in paths if modality != "text" else ():
        _check_file(path)
    return described(extractor_of(facts, modality), paths)


def described(chosen: Extractor, items: Sequence[str]) -> Tensor:
    """Extract the features (n, d) of media that are there, or of texts, by an extractor."""
    modality = chosen.modality
    rows = tuple(Row(str(i), {modality: path}, label="-", split="test", columns={}) for i, path in enumerate(items))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "features.h5"
        outcome = extract(Manifest("media", rows, ("-",)), place, [chosen], workers=min(2, len(items)))
        if outcome.failures:
            failure = outcome.failures[0]
            raise InputError(f"{failure.media}: cannot be read as {modality}: {failure.reason}, {failure.detail}")
        return torch.from_numpy(read_features(place).features[modality])


def extractor_of(facts: Facts, modality: Modality) -> Extractor:
    """Build the extractor that made the features of a modality, and check that it is the same.

    Raises:
        InputError: the features are of unknown origin, or their extractor cannot be built here.
    """
    expected = facts.features.get(modality) or {}
    if not expected:
        raise InputError(f"{modality}: the model does not know what made its features; embed arrays instead of files")
    name, parameters = str(expected["extractor"]), nested(expected, "parameters")
    try:
        known = options_of(name, modality)
    except UntrustedCodeError:
        raise
    except InputError:
        raise InputError(
            f"{modality}: the model's features were made by {name}, which is not an extractor that is installed here; "
            "embed arrays instead of files"
        ) from None
    options = {key: parameters[key] for key in known if key in parameters} | dict(nested(expected, "source"))
    if "weights" in options and EXTRACTORS[modality].is_own(name):
        options["weights"] = _published(options["weights"])
    built = extractor(name, modality, options)
    if built.fit is not None:
        raise InputError(
            f"{modality}: {name} was fitted on the training clips, by matrices that a model does not hold; "
            "embed arrays instead of files"
        )
    about: JsonObject = {"extractor": built.name, "parameters": dict(built.parameters), "about": dict(built.about)}
    other = difference(expected, fingerprint(about))
    if other:
        raise InputError(f"{modality}: the model was trained on other features than can be made here: {other}")
    return built


def _published(value: Json) -> Json:
    """Return the file of weights that a parameter names by its checksum, "auto" where that is unknown.

    The features were then made with a file of one's own, or with a published one without a published checksum; which of
    the two, the comparison of the fingerprints says. A path or an address is unknown too: it comes from a file, and a
    SavedModel that it leads to would run.
    """
    if value == "untrained":
        return value
    if not isinstance(value, str) or not _CHECKSUM.fullmatch(value):
        return "auto"
    known = {one.sha256: name for name, one in WEIGHTS.items() if one.sha256}
    return next((str(weights_path(name)) for digest, name in known.items() if value.startswith(digest)), "auto")


def _check_file(path: str) -> None:
    if not Path(path).is_file():
        raise InputError(f"{path}: {'is no file' if Path(path).exists() else 'no such file'}")
