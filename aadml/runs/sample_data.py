"""The sample clips as data where none are named: rendered and extracted once, in the cache."""

from collections.abc import Callable
from pathlib import Path

from aadml.configuration.config import Config
from aadml.data import SampleClips, write_sample_clips
from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.extract import extract
from aadml.feature_extraction.manifest import read_manifest
from aadml.feature_extraction.weights.table import weights_folder
from aadml.runs.data import takes_captions


def with_sample_data(config: Config, say: Callable[[str], None]) -> Config:
    """Name the sample clips as data where a config names none; they are rendered and extracted once.

    Args:
        config: returned as it is where it names data.
        say: called with one line for each thing that happens.
    """
    if config.common.data:
        return config
    path = sample_manifest(say) if takes_captions(config.options) else sample_features(say)
    say(f"no --data given: training on the sample clips, {path}")
    return config.on(str(path))


def sample_folder(wanted: SampleClips) -> Path:
    """Name the place of rendered sample clips in the cache."""
    return weights_folder().parent / "sample-clips" / f"{wanted.clips}-{wanted.seconds:g}s-seed{wanted.seed}"


def sample_manifest(say: Callable[[str], None]) -> Path:
    """Return the manifest of the default sample clips, which are rendered where they are not there yet."""
    wanted = SampleClips()
    folder = sample_folder(wanted)
    manifest = folder / "manifest.csv"
    if not manifest.is_file():
        say(f"rendering {wanted.clips} sample clips into {folder}")
        write_sample_clips(folder, wanted)
    return manifest


def sample_features(say: Callable[[str], None]) -> Path:
    """Return the feature file of the default sample clips, made in the cache where it is not there yet."""
    wanted = SampleClips()
    folder = sample_folder(wanted)
    features = folder / "features.h5"
    if features.is_file():
        return features
    manifest = sample_manifest(say)
    say("extracting log-mel and hog-color features")
    outcome = extract(
        read_manifest(manifest), features, [extractor("log-mel", "audio"), extractor("hog-color", "visual")]
    )
    if outcome.failures:
        features.unlink(missing_ok=True)  # the next call would take it
        raise InputError(f"{folder}: {len(outcome.failures)} sample clips could not be read back; delete the folder")
    return features
