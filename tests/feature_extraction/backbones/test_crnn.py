import torch

from aadml.feature_extraction.backbones.crnn import Crnn, pooled_lengths

LENGTHS = torch.tensor([103, 77, 50, 3])


def sound():
    return torch.randn(4, 103, 64, generator=torch.Generator().manual_seed(0)) - 5


def test_full_size_has_the_parameters_of_the_published_network():
    network = Crnn()
    convolutions = 288 + 32 * 128 * 9 + 3 * 128 * 128 * 9
    recurrent = 2 * 3 * 150 * (128 + 150 + 2)
    norms = 2 * (1 + 32 + 3 * 128)
    assert sum(p.numel() for p in network.parameters()) == convolutions + recurrent + norms == 732_354
    with torch.no_grad():
        assert network.eval()(sound()).shape == (4, 103, 300)


def test_a_clip_is_described_as_if_it_were_alone():
    network, clips = Crnn(channels=8, dimension=6).eval().double(), sound().double()
    for pooled in (False, True):
        together = network(clips, LENGTHS, pooled=pooled)
        ends = pooled_lengths(LENGTHS) if pooled else LENGTHS
        for i, (length, end) in enumerate(zip(LENGTHS, ends, strict=True)):
            alone = network(clips[i : i + 1, :length], pooled=pooled)[0]
            assert len(alone) == end
            torch.testing.assert_close(together[i, :end], alone, rtol=1e-9, atol=1e-12)
            assert not together[i, end:].any()


def test_silence_gives_finite_gradients():
    network = Crnn(channels=8, dimension=6).train()
    network(torch.zeros(2, 40, 64), torch.tensor([40, 11])).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


def test_frames_at_a_quarter_of_the_rate_are_counted():
    assert pooled_lengths(torch.tensor([1, 4, 7, 8, 11, 12])).tolist() == [1, 1, 1, 2, 2, 3]
