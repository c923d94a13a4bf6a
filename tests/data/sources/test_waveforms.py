import hashlib
import tracemalloc

import h5py
import numpy as np
import pytest
import torch

from aadml.comparison.features import Source
from aadml.data.sources.waveforms import PackedWaveforms, Waveforms, unreadable
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media import Sound
from tests.sound_files import noise, write_wav


def lengths(sounds, rows):
    return [None if samples is None else len(samples) for samples in sounds.batch(torch.tensor(rows))]


def test_a_batch_holds_the_sound_of_each_item(sounds):
    batch = sounds.batch(torch.tensor([1, 0, 4]))
    assert isinstance(sounds, Source)
    assert [len(samples) for samples in batch] == [5000, 9000, 5000]
    assert np.array_equal(batch[0], batch[2])
    (alone,) = sounds.select(torch.tensor([1])).batch(torch.tensor([0]))
    assert np.array_equal(alone, batch[0])


def test_sound_comes_at_the_rate_that_is_wanted_and_no_longer_than_allowed(sounds):
    assert lengths(sounds.at(16_000), [0]) == [pytest.approx(4500, abs=20)]
    short = Waveforms(sounds.paths, sounds.items, Sound(32_000, seconds=0.1))
    assert lengths(short, [0, 3]) == [3200, 3200]
    assert lengths(short.at(16_000), [0, 3]) == [1600, 1600]


def test_of_a_sound_of_more_than_an_hour_the_first_minute_is_used(tmp_path):
    path = write_wav(tmp_path / "long.wav", noise(3_700_000), rate=1000)
    source = Waveforms((path,), torch.arange(1)).at(2000)
    assert lengths(source, [0]) == [120_000]
    assert not source.failures


def test_a_corrupt_or_vanished_file_costs_its_items_and_is_named_once(sounds, tmp_path):
    (tmp_path / "1.wav").write_bytes(b"RIFF nonsense" * 50)
    (tmp_path / "2.wav").unlink()
    with pytest.warns(UserWarning, match=r"[12]\.wav: the file was left out") as warned:
        assert lengths(sounds, [0, 1, 2, 3, 4]) == [9000, None, None, 3200, None]
    assert len(warned) == 2
    assert sounds.failures.keys() == {sounds.paths[1], sounds.paths[2]}
    sounds.select(torch.tensor([1])).batch(torch.tensor([0]))  # known by now: neither decoded nor named again


def test_a_glance_finds_what_is_missing_empty_or_cut_short(sounds, tmp_path):
    whole = (tmp_path / "0.wav").read_bytes()
    (tmp_path / "1.wav").write_bytes(whole[:6000])
    (tmp_path / "2.wav").write_bytes(b"")
    (tmp_path / "3.wav").unlink()
    found = unreadable(sounds.paths)
    assert set(found) == set(sounds.paths[1:])
    assert "cut short" in found[sounds.paths[1]]
    assert "empty" in found[sounds.paths[2]]
    assert "missing" in found[sounds.paths[3]]


def test_peak_memory_stays_that_of_a_batch(tmp_path):
    paths = tuple(write_wav(tmp_path / f"{i}.wav", noise(32_000, i)) for i in range(48))
    source = Waveforms(paths, torch.arange(48))
    peaks = []
    for batches in (1, 6):
        tracemalloc.start()
        for rows in torch.arange(48).split(8)[:batches]:
            source.batch(rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.fixture
def packed(tmp_path):
    with h5py.File(tmp_path / "p.h5", "w") as file:
        file["waveform"] = np.arange(24, dtype=np.float32).reshape(3, 8)
        file["audio_length"] = np.asarray([5, 0, 99])
    return PackedWaveforms(str(tmp_path / "p.h5"), torch.tensor([2, 0, 1, 2]))


def test_packed_sounds_are_rows_without_their_padding(packed, tmp_path):
    assert [one.tolist() for one in packed.batch(torch.tensor([0, 1, 2]))] == [[*range(16, 24)], [*range(5)], [8]]
    assert packed.paths == tuple(f"{packed.path}#{row}" for row in range(3))
    assert packed.select(torch.arange(0)).paths == ()
    assert packed.at(32_000) is packed
    with pytest.raises(InputError, match=r"is packed at 32000 Hz, but 16000 Hz are needed; use the wav files"):
        packed.at(16_000)
    digest = hashlib.sha256((tmp_path / "p.h5").read_bytes()).digest()
    assert list(packed.content()) == [digest, packed.items.numpy().tobytes()]
    sums = [hashlib.sha256(np.float32(row).tobytes()).digest() for row in ([*range(5)], [8])]
    assert packed.sums([0, 1]) == packed.recordings([0, 1]) == sums
    with h5py.File(packed.path, "a") as file:
        del file["audio_length"]
    assert [len(one) for one in packed.decoded([0, 1])] == [8, 8]


@pytest.mark.parametrize(
    ("size", "says"),
    [(0, "corrupt: the file is empty"), (11, "corrupt: 11 bytes"), (44, "corrupt: a wav file without samples")],
)
def test_a_file_that_is_too_short_is_named(tmp_path, size, says):
    path = write_wav(tmp_path / "a.wav", np.zeros(0))
    content = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(content[:size])
    assert unreadable([path]) == {path: says}
