"""Deep CCA: its loss is the sum of the canonical correlations, and its gradient is right."""

import numpy as np
import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, keywords, schema
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.correlation.algebra import centered, covariance, cross_covariance, inverse_square_root
from aadml.methods.correlation.dcca import total_correlation
from aadml.methods.method import Context
from aadml.methods.training.settings import Training
from tests.sections import typed


def made(name, context, training, **options):
    """Build a method of flat options, checked as those of a config are."""
    own = {key: value for key, value in options.items() if key in schema(METHODS[name])}
    checked = checked_options(METHODS[name], OptionValues(**own), "method")
    return METHODS[name](context, training, **keywords(METHODS[name], OptionValues(**typed(**options) | vars(checked))))


def views(n=50, d=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shared = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return shared + torch.randn(n, d, generator=generator), shared + torch.randn(n, d, generator=generator)


def correlation_of(first, second, objective="trace", **of_source):
    first, second = first - first.mean(0), second - second.mean(0)
    covariances = covariance(first, 1e-4), covariance(second, 1e-4)
    return total_correlation(*covariances, cross_covariance(first, second), objective, **of_source)


def test_the_loss_is_the_sum_of_the_canonical_correlations():
    (first, _), (second, _) = map(centered, views())
    roots = [inverse_square_root(covariance(values, 1e-4)).numpy() for values in (first, second)]
    singular = np.linalg.svd(roots[0] @ cross_covariance(first, second).numpy() @ roots[1], compute_uv=False)
    assert float(correlation_of(first, second)) == pytest.approx(singular.sum(), abs=1e-6)
    assert float(correlation_of(first, second, "squared")) == pytest.approx((singular**2).sum(), abs=1e-9)
    assert float(correlation_of(first, second, "source")) == pytest.approx(singular.sum(), abs=1e-6)
    for top in (1, 2, len(singular)):
        expected = np.sqrt(np.sort(singular**2)[-top:] + 0.3).sum()
        assert float(correlation_of(first, second, "source", top=top, ridge=0.3)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("objective", ["trace", "squared"])
def test_the_gradient_matches_finite_differences(objective):
    first, second = (values.requires_grad_() for values in views(12, 3))
    assert torch.autograd.gradcheck(lambda a, b: correlation_of(a, b, objective), (first, second), atol=1e-6)


def test_the_gradient_is_finite_where_a_modality_is_constant_or_ranks_lack():
    first, second = views(20, 5)
    first = torch.zeros_like(first).requires_grad_()
    correlation_of(first, second).backward()
    assert torch.isfinite(first.grad).all()
    twice = torch.cat([second, second], 1).requires_grad_()
    correlation_of(twice, torch.cat([second, second], 1)).backward()
    assert torch.isfinite(twice.grad).all()


@pytest.mark.parametrize("name", ["dcca", "c-dcca"])
def test_a_batch_smaller_than_the_outputs_is_refused_with_a_remedy(name):
    with pytest.raises(InputError, match=r"set training\.batch to 80, for example$"):
        made(name, Context({"audio": 4, "visual": 5}, 3), Training(batch=8), outputs=20)


@pytest.mark.parametrize("name", ["dcca", "c-dcca"])
def test_training_raises_the_correlation_and_the_linear_solution_is_kept(name):
    first, second = views(300, 6)
    labels = torch.arange(300) % 3
    data = Clips({"audio": first.float(), "visual": second.float()}, labels, tuple(map(str, range(300))), tuple("abc"))
    context = Context({"audio": 6, "visual": 6}, 3)
    method = made(name, context, Training(epochs=5, batch=100, learning_rate=1e-2), outputs=6, dimension=4)
    method.fit(data, data.select(torch.arange(60)))
    vectors = method.embed(data["audio"], "audio")
    assert vectors.shape == (300, 4)
    again = made(name, context, Training(epochs=5, batch=100), outputs=6, dimension=4)
    again.load(method.state())
    assert torch.equal(again.embed(data["audio"], "audio"), vectors)
