"""The sample clips as data where none are named."""

from types import SimpleNamespace

import pytest

from aadml.configuration.from_arguments import assemble
from aadml.data.samples.clip import EDITION
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media import Sound
from aadml.runs import sample_data


@pytest.fixture
def sample(monkeypatch, tmp_path):
    """Make files in the place of sample clips and features; note what was done."""
    done = []
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache" / "weights"))
    monkeypatch.setattr(sample_data, "weights_folder", lambda: tmp_path / "cache" / "weights")

    def rendered(folder):
        done.append("rendered")
        folder.mkdir(parents=True)
        (folder / "manifest.csv").write_text("id,media\n")

    def executed(plan):
        done.append(tuple((one.name, one.modality) for one in plan.extractors))
        plan.output.write_bytes(b"features")
        return SimpleNamespace(failures=[])

    monkeypatch.setattr(sample_data, "sample_data", rendered)
    monkeypatch.setattr(sample_data, "read_manifest", lambda path: path)
    monkeypatch.setattr(sample_data, "execute", executed)
    return done


def test_sample_clips_are_rendered_and_extracted_once(sample, tmp_path):
    said = []
    first = sample_data.sample_features(said.append)
    assert sample == ["rendered", (("log-mel", "audio"), ("hog-color", "visual"))]
    assert len(said) == 2
    assert sample_data.sample_features(said.append) == first
    assert sample_data.sample_manifest(said.append) == first.with_name("manifest.csv")
    assert (len(sample), len(said)) == (2, 2)
    wanted = sample_data.SampleClips()
    name = f"{wanted.clips}-{wanted.seconds:g}s-seed{wanted.seed}-edition{EDITION}"
    assert first.parent == tmp_path / "cache" / "sample-clips" / name


def test_another_renderer_or_extractor_makes_the_files_again(sample, monkeypatch):
    first = sample_data.sample_features(print)
    monkeypatch.setattr(Sound, "edition", Sound.edition + 1)
    second = sample_data.sample_features(print)
    assert (second.parent, len(sample)) == (first.parent, 3)
    monkeypatch.setattr(sample_data, "EDITION", EDITION + 1)
    third = sample_data.sample_features(print)
    assert (third.name, len(sample)) == (second.name, 5)
    assert len({first, second, third}) == 3


def test_sample_clips_that_cannot_be_read_back_are_told(sample, monkeypatch):
    def in_part(plan):
        if next(written):
            plan.output.write_bytes(b"features")
        return SimpleNamespace(failures=["a", "b"])

    monkeypatch.setattr(sample_data, "execute", in_part)
    written = iter((True, True, False))
    for _ in range(3):  # the second time too: what could be read is not all of the clips
        with pytest.raises(InputError, match="2 sample clips could not be read; delete the folder"):
            sample_data.sample_features(lambda _: None)


def test_a_config_without_data_takes_the_sample_clips_as_its_method_reads_them(sample):
    said = []
    for method, ending in (("aadml", ".h5"), ("audio-text", "manifest.csv")):
        config = assemble(method=method, sample=True)
        found = sample_data.with_sample_data(config, said.append)
        assert found.data.endswith(ending)
        assert said[-1] == f"--data is not set, so the training data are the sample clips: {found.data}"
        assert sample_data.with_sample_data(found, pytest.fail) == found
