from dataclasses import replace
from pathlib import Path

import pytest
import torch

from aadml.data.sources.array_cache import ArrayCache
from aadml.data.sources.loading import Loading
from aadml.data.sources.log_mels import log_mels
from aadml.data.sources.waveforms import Waveforms
from aadml.feature_extraction.frontends.log_mel import PANNS, log_mel
from aadml.feature_extraction.media import Sound
from tests.sound_files import noise, write_wav


def test_spectrograms_are_those_of_each_sound_alone_whatever_is_kept(sounds):
    for budget in (0, 40_000, 1 << 30):
        source = log_mels(sounds, PANNS, Loading(memory=budget))
        for _ in range(2):
            batch = source.batch(torch.arange(5))
            for i in range(5):
                alone = log_mel(torch.from_numpy(sounds.decoded([int(sounds.items[i])])[0]), PANNS)
                assert int(batch.lengths[i]) == len(alone)
                assert torch.equal(batch.values[i, : len(alone)], alone)
        assert sum(s.numel() * 4 for s in source.cached.values()) <= budget
    assert len(source.cached) == 4


def test_what_is_kept_is_shared_by_selections_and_never_decoded_again(sounds, tmp_path):
    source = log_mels(sounds, PANNS)
    first = source.batch(torch.arange(5))
    for path in tmp_path.iterdir():
        path.unlink()
    again = source.select(torch.tensor([4, 0])).batch(torch.tensor([0, 1]))
    assert torch.equal(again.values[1, :29], first.values[0])
    assert again.lengths.tolist() == [first.lengths[1].item(), first.lengths[0].item()]


def test_each_file_is_found_once():
    source = log_mels(Waveforms(("a", "b", "c"), torch.tensor([2, 2, 0, 2, 0])), PANNS)
    assert [rows.tolist() for rows in source.distinct()] == [[2, 0], [1, 1, 0, 1, 0]]


@pytest.fixture
def files(tmp_path):
    """Six files, two of them of equal length; item 6 is file 1 again."""
    lengths = enumerate([9000, 5000, 9000, 7000, 6000, 4000])
    paths = tuple(write_wav(tmp_path / f"{i}.wav", noise(n, i)) for i, n in lengths)
    return Waveforms(paths, torch.tensor([0, 1, 2, 3, 4, 5, 1]))


def test_the_first_sound_that_is_cut_is_named_once_whether_it_was_kept_or_not(files):
    said = (
        r"0\.wav: lasts 0.25 s or more; only the first 0.25 s of such sounds are used "
        r"\(further sounds are not reported\)"
    )
    for _ in range(2):
        loading = Loading.of(memory_mib=0, disk_mib=9)
        source = log_mels(replace(files, inputs=Sound(32_000, seconds=0.25)), PANNS, loading)
        source.batch(torch.tensor([4, 1]))
        with pytest.warns(UserWarning, match=said):
            source.batch(torch.tensor([2, 0]))
        source.batch(torch.tensor([2]))  # a second warning would be an error


def test_a_sound_that_cannot_be_had_is_absent_and_costs_the_others_nothing(files):
    whole = log_mels(files, PANNS).batch(torch.arange(7))
    Path(files.paths[1]).write_bytes(b"RIFF nonsense" * 50)
    with pytest.warns(UserWarning, match=r"1\.wav: the file was left out"):
        batch = log_mels(files, PANNS).batch(torch.arange(7))
    assert batch.present.tolist() == [True, False, True, True, True, True, False]
    assert torch.equal(batch.values[[0, 2, 3, 4, 5]], whole.values[[0, 2, 3, 4, 5]])


def test_spectrograms_are_kept_on_disk_by_the_content_of_their_file(files, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))

    def source():
        return log_mels(Waveforms(files.paths, files.items), PANNS, Loading(0, ArrayCache(1 << 20)))

    first = source().batch(torch.arange(7))
    assert len(list((tmp_path / "cache" / "decoded").iterdir())) == 6
    write_wav(tmp_path / "2.wav", noise(16_000, 9))
    longer = source().batch(torch.tensor([2]))
    assert longer.lengths.tolist() == [51]
    monkeypatch.setattr("aadml.data.sources.media_files.decode", lambda *_: pytest.fail("decoded again"))
    again = source().batch(torch.tensor([0, 1, 2, 6]))
    assert torch.equal(again.values[[0, 1, 3], : first.values.shape[1]], first.values[[0, 1, 6]])
    assert torch.equal(again.values[2:3], longer.values)
