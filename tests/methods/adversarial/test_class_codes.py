"""Codes of classes: coordinate descent never raises their cost and ends where no bit can be bettered."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.methods.adversarial.class_codes import code_loss, fitted_codes, signs


def drawn(seed, n=20, k=5, classes=3):
    generator = torch.Generator().manual_seed(seed)
    vectors = signs(torch.randn(n, k, generator=generator)).double()
    labels = torch.randint(0, classes, (n,), generator=generator)
    return vectors, labels, signs(torch.randn(classes, k, generator=generator)).double()


def test_a_bit_is_one_above_zero_alone():
    assert signs(torch.tensor([-2.0, -0.0, 0.0, 1e-30])).tolist() == [-1, -1, -1, 1]


def test_the_cost_is_its_definition():
    vectors, labels, codes = drawn(0)
    total = sum(
        (float(h @ b) - 5 * (1 if label == c else -1)) ** 2
        for h, label in zip(vectors, labels.tolist(), strict=True)
        for c, b in enumerate(codes)
    )
    torch.testing.assert_close(code_loss(vectors, labels, codes), torch.tensor(total, dtype=torch.float64))


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_a_round_never_raises_the_cost(seed, classes):
    vectors, labels, codes = drawn(seed, n=7, k=4, classes=classes)
    better = fitted_codes(vectors, labels, codes)
    assert code_loss(vectors, labels, better) <= code_loss(vectors, labels, codes)
    assert set(better.flatten().tolist()) <= {-1.0, 1.0}


def test_at_the_end_no_single_bit_can_be_bettered():
    vectors, labels, codes = drawn(4)
    for _ in range(20):
        codes = fitted_codes(vectors, labels, codes)
    best = code_loss(vectors, labels, codes)
    for c in range(3):
        for bit in range(5):
            flipped = codes.clone()
            flipped[c, bit] *= -1
            assert code_loss(vectors, labels, flipped) >= best


def test_without_clips_codes_stay():
    _, _, codes = drawn(1)
    assert torch.equal(fitted_codes(torch.zeros(0, 5), torch.zeros(0).long(), codes), codes)
