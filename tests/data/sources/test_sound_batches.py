"""Spectrograms that the device of a batch makes: those that are made where sound is decoded, up to rounding."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from aadml.data.sources.loading import Loading
from aadml.data.sources.log_mels import log_mels
from aadml.data.sources.padding import Padded, sent
from aadml.data.sources.sound_batches import SoundBatch
from aadml.data.sources.waveforms import Waveforms
from aadml.feature_extraction.frontends.log_mel import CRNN, PANNS, VGGISH
from aadml.methods.training.learner import on_device
from tests.sound_files import noise, write_wav

CPU = torch.device("cpu")
ON_DEVICE = Loading(log_mel="device")


@pytest.fixture
def sounds(tmp_path):
    """Five files, two of them of equal length, one that is too short for a frame; item 5 is file 1 again."""
    lengths = enumerate([9000, 5000, 9000, 7000, 100])
    paths = tuple(write_wav(tmp_path / f"{i}.wav", noise(n, i)) for i, n in lengths)
    return Waveforms(paths, torch.tensor([0, 1, 2, 3, 4, 1]))


def same(batch: Padded, expected: Padded) -> None:
    assert torch.equal(batch.lengths, expected.lengths)
    assert torch.equal(batch.present, expected.present)
    torch.testing.assert_close(batch.values, expected.values, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("settings", [PANNS, CRNN, VGGISH])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4, 5], [4], [5, 1, 1], [2, 0]])
def test_a_batch_is_that_of_the_processor_up_to_rounding(sounds, settings, rows):
    expected = log_mels(sounds, settings).batch(torch.tensor(rows))
    source = log_mels(sounds, settings, ON_DEVICE)
    for _ in range(2):  # decoded, then out of memory
        batch = source.batch(torch.tensor(rows))
        assert isinstance(batch, SoundBatch)
        assert len(batch) == len(rows)
        same(batch.to(CPU), expected)
        same(on_device(source, torch.tensor(rows), CPU), expected)


@pytest.mark.parametrize("by", ["processor", "device"])
def test_the_first_sound_that_is_cut_is_named_once_whether_it_was_kept_or_not(sounds, by):
    said = (
        r"0\.wav: lasts 0.25 s or more; only the first 0.25 s of such sounds are used "
        r"\(further sounds are not reported\)"
    )
    for _ in range(2):
        loading = Loading.of(memory_mib=0, disk_mib=9, workers=0, log_mel=by)
        source = log_mels(replace(sounds, seconds=0.25), PANNS, loading)
        source.batch(torch.tensor([4, 1]))
        with pytest.warns(UserWarning, match=said):
            source.batch(torch.tensor([2, 0]))
        source.batch(torch.tensor([2]))  # a second warning would be an error


def test_a_sound_that_cannot_be_had_is_absent_and_costs_the_others_nothing(sounds):
    Path(sounds.paths[1]).write_bytes(b"RIFF nonsense" * 50)
    with pytest.warns(UserWarning, match=r"1\.wav: the file was left out"):
        batch = log_mels(sounds, PANNS, ON_DEVICE).batch(torch.arange(6))
    assert batch.present.tolist() == [True, False, True, True, True, False]
    same(batch.to(CPU), log_mels(sounds, PANNS).batch(torch.arange(6)))


def test_sounds_are_what_is_kept_in_memory_and_nothing_is_kept_on_disk(sounds, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    source = log_mels(sounds, PANNS, Loading.of(memory_mib=1, disk_mib=1, workers=0, log_mel="device"))
    source.batch(torch.arange(6)).to(CPU)
    assert {number: len(kept) for number, kept in source.cached.items()} == {0: 9000, 1: 5000, 2: 9000, 3: 7000, 4: 100}
    assert not (tmp_path / "cache").exists()
    assert source.elsewhere().loading.log_mel == "device"


@pytest.mark.gpu
def test_a_card_makes_what_the_processor_makes_up_to_rounding(sounds):
    expected = log_mels(sounds, PANNS).batch(torch.arange(6))
    batch = log_mels(sounds, PANNS, ON_DEVICE).batch(torch.arange(6)).to(torch.device("cuda"))
    assert batch.values.is_cuda
    same(batch.to(CPU), expected)


@pytest.mark.gpu
def test_what_is_sent_to_a_card_arrives_whole():
    values = torch.randn(1000, 1000)
    there = [sent(values + number, torch.device("cuda")) for number in range(20)]
    assert all(torch.equal(one.cpu(), values + number) for number, one in enumerate(there))
