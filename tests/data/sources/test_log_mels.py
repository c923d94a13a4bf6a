import torch

from aadml.data.sources.loading import Loading
from aadml.data.sources.log_mels import log_mels
from aadml.data.sources.waveforms import Waveforms
from aadml.feature_extraction.frontends.log_mel import PANNS, log_mel


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
