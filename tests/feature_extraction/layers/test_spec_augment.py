import torch

from aadml.feature_extraction.layers.spec_augment import _stripes, spec_augment


def zeros_of(augmented):
    """Fully zero frames and bands of each item: (b, t), (b, bands)."""
    gone = augmented[:, 0] == 0
    return gone.all(2), gone.all(1)


def test_only_whole_stripes_vanish_and_nothing_else_changes():
    spectrogram = torch.rand(50, 1, 300, 64) + 1
    generator = torch.Generator().manual_seed(0)
    augmented = spec_augment(spectrogram, generator=generator)
    frames, bands = zeros_of(augmented)
    expected = (~frames)[:, None, :, None] & (~bands)[:, None, None, :]
    assert torch.equal(augmented, spectrogram * expected)
    assert frames.sum(1).max() <= 2 * 63
    assert bands.sum(1).max() <= 2 * 7


def test_widths_have_the_mean_of_their_law():
    generator = torch.Generator().manual_seed(1)
    mask = _stripes(torch.full((1000,), 5000), 5000, 64, generator)  # so many frames that stripes seldom overlap
    assert abs(mask.sum(1).float().mean() - 2 * 31.5) < 2.0  # uniform over 0..63


def test_stripes_have_every_width_below_their_limit_and_no_other():
    generator = torch.Generator().manual_seed(4)
    for width, most in ((64, 2 * 63), (8, 2 * 7)):  # two stripes have every sum of two widths
        mask = _stripes(torch.full((60_000,), 500), 500, width, generator)
        assert set(mask.sum(1).tolist()) == set(range(most + 1))


def test_stripes_fall_on_sound_and_not_on_padding():
    lengths = torch.tensor([70, 300])
    generator = torch.Generator().manual_seed(2)
    for _ in range(50):
        frames, _ = zeros_of(spec_augment(torch.ones(2, 1, 300, 64), lengths, generator=generator))
        assert not frames[0, 70:].any()


def test_equal_seeds_give_equal_stripes_and_items_their_own():
    ones = torch.ones(2, 1, 300, 64)
    first, again = (spec_augment(ones, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first[0], first[1])


def test_sounds_shorter_than_a_stripe_survive():
    generator = torch.Generator().manual_seed(3)
    for _ in range(20):
        assert spec_augment(torch.ones(1, 1, 5, 64), generator=generator).shape == (1, 1, 5, 64)


def test_the_stripes_of_a_seed_stay_the_same():
    lengths = torch.tensor([200, 90])
    frames, bands = zeros_of(
        spec_augment(torch.ones(2, 1, 200, 64), lengths, generator=torch.Generator().manual_seed(8))
    )
    assert [row.nonzero()[:, 0].tolist() for row in frames] == [[*range(21, 24), *range(34, 54)], [*range(16, 74)]]
    assert [row.nonzero()[:, 0].tolist() for row in bands] == [[*range(25, 30), *range(44, 48)], [23, 52, 53, 54]]
