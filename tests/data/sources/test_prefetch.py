"""What is decoded ahead by other processes is what this one would decode, and no file is lost without a word."""

import os
import signal

import numpy as np
import pytest
import torch

from aadml.comparison.processes.launch import ProcessLost
from aadml.data.sources.array_cache import ArrayCache
from aadml.data.sources.loading import Loading
from aadml.data.sources.log_mels import log_mels
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.network_items import NetworkItems
from aadml.data.sources.prefetch import Prefetch
from aadml.data.sources.waveforms import Waveforms
from aadml.feature_extraction.frontends.log_mel import PANNS
from aadml.feature_extraction.media import Sound
from tests.sound_files import noise, write_wav

BATCHES = [torch.tensor(rows) for rows in ([0, 1], [2, 6], [3, 4, 5], [0, 5], [1, 2, 3])]


@pytest.fixture
def sounds(tmp_path):
    """Six files of unequal length; item 6 is file 1 again."""
    paths = tuple(write_wav(tmp_path / f"{i}.wav", noise(4000 + 700 * i, i)) for i in range(6))
    return Waveforms(paths, torch.tensor([0, 1, 2, 3, 4, 5, 1]))


@pytest.fixture
def decode_nothing(monkeypatch):
    """Let this process decode nothing from now on."""

    def decode_nothing():
        monkeypatch.setattr("aadml.data.sources.media_files.decode", lambda *_: pytest.fail("decoded in this process"))

    return decode_nothing


def sources(sounds, workers):
    """Spectrograms of half of which there is room in memory, and windows of a network."""
    files = MediaFiles(sounds.paths, sounds.items, Sound(16_000))
    windows = NetworkItems(files, lambda values: [{"x": values[:1000]}], files.items, Loading(0, workers=workers))
    return log_mels(sounds, PANNS, Loading(15_000, workers=workers)), windows


def batches(ahead, *sources):
    features = dict(zip(("audio", "visual"), sources, strict=False))
    return [[source.batch(rows) for source in sources] for rows in ahead.over(BATCHES, features)]


@pytest.mark.slow
def test_batches_are_equal_a_broken_file_is_named_once_and_a_killed_process_in_one_line(
    sounds, tmp_path, decode_nothing
):
    (tmp_path / "3.wav").write_bytes(b"RIFF nonsense" * 50)
    with pytest.warns(UserWarning, match=r"3\.wav: the file was left out"):
        expected = batches(Prefetch({}), *sources(sounds, 0))
    sounds.failures.clear()
    decode_nothing()
    mels, windows = sources(sounds, 2)
    with Prefetch({"audio": mels, "visual": windows, "text": torch.zeros(7, 2)}) as ahead:
        with pytest.warns(UserWarning, match=r"3\.wav: the file was left out") as warned:
            found = batches(ahead, mels, windows)
        assert len(warned) == 2  # once a source
        processes = [worker.process for worker in ahead._workers.values()]
        os.kill(processes[1].pid, signal.SIGKILL)
        with pytest.raises(ProcessLost, match=r"^a process that decodes for training ended \(SIGKILL\)$"):
            batches(ahead, mels, windows)
    assert len(processes) == 2
    assert not any(process.is_alive() for process in processes)
    assert 0 < len(mels.cached) < 5
    for (one, items), (other, own) in zip(found, expected, strict=True):
        assert torch.equal(one.values, other.values)
        assert torch.equal(one.lengths, other.lengths)
        assert items.present.tolist() == one.present.tolist() == other.present.tolist() == own.present.tolist()
        for clip, same in zip(items.clips, own.clips, strict=True):
            assert all(np.array_equal(a["x"], b["x"]) for a, b in zip(clip, same, strict=True))


def test_what_lies_in_memory_starts_no_process(sounds, decode_nothing, monkeypatch):
    source = log_mels(sounds, PANNS, Loading(workers=2))
    source.batch(torch.arange(7))
    decode_nothing()
    monkeypatch.setattr("aadml.data.sources.prefetch.start", lambda *_: pytest.fail("started a process"))
    with Prefetch({"audio": source}) as ahead:
        assert [source.batch(rows).present.all() for rows in ahead.over(BATCHES, {"audio": source})] == [True] * len(
            BATCHES
        )


def test_a_process_that_may_have_no_children_decodes_itself(sounds, monkeypatch):
    monkeypatch.setattr("aadml.data.sources.prefetch.start", lambda *_: pytest.fail("started a process"))
    monkeypatch.setattr("multiprocessing.process._current_process._config", {"daemon": True})
    source = log_mels(sounds, PANNS, Loading(0, workers=2))
    assert len(batches(Prefetch({"audio": source}), source)) == len(BATCHES)


def test_spectrograms_are_kept_on_disk_by_the_content_of_their_file(sounds, tmp_path, monkeypatch, decode_nothing):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))

    def source():
        return log_mels(Waveforms(sounds.paths, sounds.items), PANNS, Loading(0, ArrayCache(1 << 20)))

    first = source().batch(torch.arange(7))
    assert len(list((tmp_path / "cache" / "decoded").iterdir())) == 6
    write_wav(tmp_path / "2.wav", noise(16_000, 9))
    longer = source().batch(torch.tensor([2]))
    assert longer.lengths.tolist() == [51]
    decode_nothing()
    again = source().batch(torch.tensor([0, 1, 2, 6]))
    assert torch.equal(again.values[[0, 1, 3], : first.values.shape[1]], first.values[[0, 1, 6]])
    assert torch.equal(again.values[2:3], longer.values)
