"""The scaling of inputs: its definition, what it lets through, and that it is fitted on the training clips alone."""

import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.inputs import Inputs, Scaling, fit_scaling, load_scaling


def clips(n=50, seed=0, present=None):
    random = torch.Generator().manual_seed(seed)
    audio = torch.randn(n, 3, generator=random) * torch.tensor([1.0, 20.0, 0.0]) + torch.tensor([5.0, -3.0, 7.0])
    visual = torch.rand(n, 2, generator=random)
    given = {} if present is None else {"audio": present}
    return Clips(
        {"audio": audio, "visual": visual}, torch.zeros(n).long(), tuple(map(str, range(n))), ("a",), present=given
    )


@pytest.mark.parametrize("clamp", [0.0, 1.5])
def test_standard_is_mean_nothing_and_deviation_one_and_a_constant_column_nothing(clamp):
    train = clips()
    scaled = fit_scaling(train, Inputs(scaling="standard", clamp=clamp)).clips(train).matrix("audio")
    values = train.matrix("audio").double()
    expected = (values - values.mean(0)) / values.std(0, unbiased=False).clamp_min(1e-9)
    expected[:, 2] = 0
    assert expected.abs().max() > 1.5
    expected = expected.clamp(-clamp, clamp) if clamp else expected
    torch.testing.assert_close(scaled.double(), expected, rtol=1e-4, atol=1e-4)


def test_minmax_is_from_nothing_to_one_of_the_training_clips_and_lets_all_through():
    train, other = clips(), clips(seed=1)
    scaling = fit_scaling(train, Inputs(scaling="minmax", clamp=0.5))
    scaled = scaling.clips(train).matrix("audio")
    torch.testing.assert_close(scaled.amin(0), torch.zeros(3))
    torch.testing.assert_close(scaled.amax(0), torch.tensor([1.0, 1.0, 0.0]))
    low, high = train.matrix("audio").amin(0), train.matrix("audio").amax(0)
    expected = (other.matrix("audio") - low)[:, :2] / (high - low)[:2]
    torch.testing.assert_close(scaling.clips(other).matrix("audio")[:, :2], expected)


def test_l2_is_of_length_one_and_none_changes_nothing():
    train = clips()
    values = train.matrix("audio")
    torch.testing.assert_close(
        fit_scaling(train, Inputs(scaling="l2")).clips(train).matrix("audio"), values / values.norm(dim=1, keepdim=True)
    )
    assert torch.equal(fit_scaling(train, Inputs(scaling="none")).clips(train).matrix("audio"), values)
    assert fit_scaling(train).inputs.clamp == Inputs().clamp > 0


def test_what_is_given_stays_as_it_is_and_a_scaling_is_known_again_by_its_state():
    train = clips()
    before = train.matrix("audio").clone()
    for name in ("none", "standard", "minmax", "l2"):
        options = Inputs(scaling=name, clamp=2.0)
        scaling = fit_scaling(train, options)
        scaled = scaling.clips(train)
        assert torch.equal(train.matrix("audio"), before)
        again = load_scaling(scaling.state(), options).clips(train)
        assert set(scaling.state()) == {f"{part}.{m}" for part in ("shift", "scale") for m in ("audio", "visual")}
        for modality in ("audio", "visual"):
            assert torch.equal(again.matrix(modality), scaled.matrix(modality))


def test_statistics_are_of_the_clips_that_have_a_modality():
    present = torch.arange(50) % 3 > 0
    train = clips(present=present)
    fitted = fit_scaling(train, Inputs(clamp=0.0))
    torch.testing.assert_close(fitted.shift["audio"], train.matrix("audio")[present].mean(0))
    with pytest.raises(InputError, match="no training clip has audio features; omit the modality"):
        fit_scaling(clips(present=torch.zeros(50, dtype=torch.bool)))


def test_a_scaling_is_not_changed():
    with pytest.raises(AttributeError):
        Scaling({}, {}).shift = {}
