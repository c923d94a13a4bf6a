"""Sample clips as default data. Clips and features are computed once and stored in the cache."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aadml.configuration.config import Config
from aadml.data.sample_clips import SampleClips, sample_data
from aadml.data.samples.clip import EDITION
from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.extract import execute
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.manifest import read_manifest
from aadml.feature_extraction.weights.table import weights_folder
from aadml.runs.data import takes_captions, with_absolute_paths


def with_sample_data(config: Config, say: Callable[[str], None]) -> Config:
    """Return a config with absolute paths, and with the sample clips as data if the config has no data.

    Args:
        config: complete config.
        say: called with a sentence for each step.

    Raises:
        InputError: the sample clips cannot be rendered, written or read.
    """
    if config.common.data:
        return with_absolute_paths(config)
    path = sample_manifest(say) if takes_captions(config.options) else sample_features(say)
    say(f"--data is not set, so the training data are the sample clips: {path}")
    return config.on(str(path))


def sample_manifest(say: Callable[[str], None]) -> Path:
    """Return the manifest of the default sample clips, which are rendered into the cache if absent.

    Raises:
        InputError: the sample clips cannot be rendered or written.
    """
    clips = SampleClips()
    name = f"{clips.clips}-{clips.seconds:g}s-seed{clips.seed}-edition{EDITION}"
    folder = weights_folder().parent / "sample-clips" / name
    manifest = folder / "manifest.csv"
    if not manifest.is_file():
        say(f"rendering {clips.clips} sample clips into {folder}")
        sample_data(folder)
    return manifest


def sample_features(say: Callable[[str], None]) -> Path:
    """Return the feature file of the default sample clips.

    If the cache lacks the file, the features are extracted into the cache. The name of the file contains the
    fingerprints of the extraction settings.

    Raises:
        InputError: the sample clips cannot be rendered, written or read.
    """
    manifest = sample_manifest(say)
    extractors = [extractor("log-mel", "audio"), extractor("hog-color", "visual")]
    plan = ExtractionPlan(read_manifest(manifest), manifest, extractors)
    features = manifest.with_name(f"features-{'-'.join(plan.settings.values())}.h5")
    if features.is_file():
        return features
    say("extracting log-mel and hog-color features")
    outcome = execute(replace(plan, output=features))
    if outcome.failures:
        features.unlink(missing_ok=True)  # otherwise the next call would use the incomplete file
        count = len(outcome.failures)
        raise InputError(f"{manifest.parent}: {count} sample clips could not be read; delete the folder and try again")
    return features
