import pytest
import torch

from aadml.data.sources.waveforms import Waveforms
from tests.sound_files import noise, write_wav


@pytest.fixture
def sounds(tmp_path):
    """Four files of unequal length; item 4 is file 1 again."""
    lengths = enumerate([9000, 5000, 7000, 3200])
    paths = tuple(write_wav(tmp_path / f"{i}.wav", noise(n, i)) for i, n in lengths)
    return Waveforms(paths, torch.tensor([0, 1, 2, 3, 1]))
