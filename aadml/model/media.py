"""Reading of media for a model, and extraction of features with the extractor of its training data."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from aadml.comparison.features import Features, Modality
from aadml.data.captions.cleaning import CLEANINGS
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.texts import Captions
from aadml.data.sources.waveforms import Waveforms
from aadml.feature_extraction.backbones import EXTRACTORS, Extractor, extractor, options_of
from aadml.feature_extraction.ground.errors import InputError, UntrustedCodeError
from aadml.feature_extraction.ground.json_values import JsonObject, nested
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.hub.snapshot import require_download_consent
from aadml.feature_extraction.jobs.in_memory import extract_in_memory
from aadml.feature_extraction.weights.hub_names import expanded
from aadml.feature_extraction.weights.table import recognize, weights_path
from aadml.model.facts import Facts, difference, fingerprint

_CHECKSUM = re.compile("[0-9a-f]{64}")
_INSTEAD = "in Python, pass features instead of files or words"


def media_features(
    facts: Facts, modality: Modality, items: Sequence[str], build: Callable[[], Extractor] | None = None
) -> Features:
    """Read media files, or captions, as the input of a model.

    Args:
        facts: facts of the model.
        modality: modality of the items.
        items: paths; captions if the modality is text.
        build: function that returns the extractor, for a model of extracted features; by default `extractor_of`.

    Returns:
        Features (n, d) as a tensor if the model reads features. Otherwise the n media files or captions as `MediaFiles`
        or `Captions`, which the model decodes.

    Raises:
        InputError: a file cannot be read, a caption is not Unicode, or the extractor is unknown, is not installed, or
            differs from the extractor of the model.
    """
    if facts.dimensions[modality]:
        if modality != "text":
            _check_files(items)
        return extract_items(extractor_of(facts, modality) if build is None else build(), items)
    if modality != "text":
        return raw_media(facts, items)
    _check_texts(items)
    if facts.towers is None:
        clean = lookup(CLEANINGS, getattr(facts.method.arguments, "cleaning", "mei"), "cleaning")
        items = [clean(text) for text in items]
    return Captions(tuple(items))


def raw_media(facts: Facts, paths: Sequence[str], segments: Sequence[Segment] = ()) -> MediaFiles:
    """Return files, or a segment of each file, as features of a model that decodes media.

    Raises:
        InputError: a path does not exist, or is not a file.
    """
    _check_files(paths)
    kind = Waveforms if facts.towers is None else MediaFiles
    return kind(tuple(paths), torch.arange(len(paths)), segments=tuple(segments))


def extract_items(chosen: Extractor, items: Sequence[str]) -> Tensor:
    """Extract the features (n, d) of existing media files, or of texts, with an extractor.

    Raises:
        InputError: an item cannot be decoded, a text is not Unicode, or features are not finite.
    """
    if chosen.modality == "text":
        _check_texts(items)
    return torch.from_numpy(extract_in_memory(chosen, items))


def extractor_of(facts: Facts, modality: Modality) -> Extractor:
    """Build the extractor of a modality's features, and compare its fingerprint with that of the model's features.

    Raises:
        InputError: the origin of the features is unknown, or their extractor is not installed, cannot be built, is
            fitted to the training clips, has another fingerprint, or needs a network from the hub without consent
            to the download.
    """
    expected = facts.features.get(modality) or {}
    if not expected:
        raise InputError(
            f"{modality}: the extractor of the model's features is unknown; train on features of `aadml extract`, or, "
            f"{_INSTEAD}"
        )
    name, parameters = str(expected["extractor"]), nested(expected, "parameters")
    try:
        known = options_of(name, modality)
    except UntrustedCodeError:
        raise
    except InputError:
        raise InputError(
            f"{modality}: the extractor of the model's features, {name}, is not installed; install the extractor, or, "
            f"{_INSTEAD}"
        ) from None
    options = {key: parameters[key] for key in known if key in parameters} | dict(nested(expected, "source"))
    if "weights" in options and EXTRACTORS[modality].is_own(name):
        options["weights"] = _published(options["weights"], name, modality)
    entry, network = expanded(name, modality)
    if EXTRACTORS[modality].is_own(entry):
        require_download_consent(*(options.get(key, network.get(key)) for key in ("model", "revision")))
    built = extractor(name, modality, options)
    if built.fit is not None:
        raise InputError(
            f"{modality}: {name} was fitted to the training clips, but the model does not contain the fitted matrices; "
            f"{_INSTEAD}"
        )
    if other := difference(expected, fingerprint_of(built)):
        raise InputError(
            f"{modality}: the installed extractor differs from the extractor of the model's features ({other}); "
            f"{_INSTEAD}"
        )
    return built


def fingerprint_of(built: Extractor) -> JsonObject:
    """Return the fingerprint of the features that an extractor computes."""
    return fingerprint({"extractor": built.name, "parameters": built.parameters, "about": built.about})


def _published(value: object, extractor: str, modality: Modality) -> str:
    """Return the path of the weight file that a parameter names by its published or recorded checksum.

    The value "untrained" is returned unchanged. The result is "auto" for paths and URLs from the file of a model,
    because a SavedModel at such a path would be executed, and for unknown weights of VGGish, whose publisher states no
    SHA-256. The comparison of fingerprints then decides.

    Raises:
        InputError: the checksum is unknown.
    """
    if not isinstance(value, str) or not _CHECKSUM.fullmatch(value):
        return "untrained" if value == "untrained" else "auto"
    if (name := recognize(value)) is None and "vggish" not in extractor:
        raise InputError(
            f"{modality}: the weights of {extractor} (SHA-256 {value[:16]}...) are neither published nor recorded "
            f"here; run `aadml weights get NAME` if `aadml weights list` has them, or, {_INSTEAD}"
        )
    return str(weights_path(name)) if name else "auto"


def _check_files(paths: Sequence[str]) -> None:
    for path in map(Path, paths):
        if not path.is_file():
            raise InputError(f"{path} {'is not a file' if path.exists() else 'does not exist'}; pass a media file")


def _check_texts(texts: Sequence[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"text: {text!a:.80} contains characters that are not Unicode; pass valid text") from error
