import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.proxies.class_mean import ClassMean, degeneracy
from aadml.proxies.contract import TrainingSet
from aadml.proxies.mixture import MixtureOptions

SIZE, WIDTH = 12, 3


def vectors(seed, count=SIZE):
    generator = torch.Generator().manual_seed(seed)
    return {m: torch.randn(count, WIDTH, generator=generator, dtype=torch.float64) for m in ("audio", "visual")}


@given(seed=st.integers(0, 2**32 - 1), residual=st.sampled_from(["none", "add", "convex"]))
def test_is_its_definition(seed, residual):
    bank, labels = vectors(seed), torch.randint(6, (SIZE,), generator=torch.Generator().manual_seed(seed))
    proxy = ClassMean(WIDTH, ("audio", "visual"), mixture=MixtureOptions(residual=residual))
    proxy.refresh(TrainingSet(bank, 10 * labels))
    rows = torch.tensor([7, 0, 3])
    batch = vectors(seed + 1, 3)
    found = proxy(batch, rows)
    for m, x in batch.items():
        for i, row in enumerate(rows.tolist()):
            others = [bank[m][j] for j in range(SIZE) if j != row and labels[j] == labels[row]]
            mean = sum(others) / max(len(others), 1)
            expected = {"none": mean, "add": x[i] + mean, "convex": 0.5 * x[i] + 0.5 * mean}[residual]
            torch.testing.assert_close(found[m][i], expected if others else x[i])


def test_the_mean_is_fixed_and_the_clip_itself_is_moved():
    bank = {m: values.requires_grad_() for m, values in vectors(0).items()}
    proxy = ClassMean(WIDTH, ("audio", "visual"))
    proxy.refresh(TrainingSet(bank, torch.zeros(SIZE, dtype=torch.int64)))
    x = {m: values.requires_grad_() for m, values in vectors(1, 4).items()}
    proxy(x, torch.arange(4))["audio"].sum().backward()
    assert torch.equal(x["audio"].grad, torch.ones(4, WIDTH, dtype=torch.float64))
    assert bank["audio"].grad is None


def test_without_labels_all_clips_are_one_class():
    bank, proxy = vectors(2), ClassMean(WIDTH, ("audio", "visual"), mixture=MixtureOptions(residual="none"))
    proxy.refresh(TrainingSet(bank))
    found = proxy({m: values[:1] for m, values in bank.items()}, torch.tensor([0]))
    torch.testing.assert_close(found["visual"][0], bank["visual"][1:].mean(0))


def test_refuses_to_be_asked_before_it_has_seen_the_training_set():
    with pytest.raises(InputError, match="no class means yet"):
        ClassMean(WIDTH, ("audio", "visual"))(vectors(0), torch.arange(SIZE))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"residual": "none", "aa_mix": 1.0}, "the metric loss does not train the encoders"),
        ({"aa_mix": 0.0}, "does not use the proxies"),
        ({"residual": "none"}, None),
        ({"residual": "none", "aa_mix": 1.0, "aa_on": "anchor"}, None),
        ({"aa_mix": 1.0}, None),
    ],
)
def test_options_without_effect_on_the_encoders_have_a_sentence(options, sentence):
    found = degeneracy(OptionValues(**options))
    assert found is None if sentence is None else found.endswith(sentence)
