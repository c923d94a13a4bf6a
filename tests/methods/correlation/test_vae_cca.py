"""VAE-CCA: its divergence, its loss term by term, and the latent it embeds by."""

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from aadml.configuration.config import resolve
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.correlation.vae_cca import center_loss, divergence
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 5, "visual": 7}, 3)
WEIGHTS = {"vae": 0.2, "label": 0.3, "correlation": 0.4, "apart": 0.5, "center": 0.6}


def learner(**options):
    torch.manual_seed(0)
    return METHODS["vae-cca"](CONTEXT, Training(), **({"hidden": 6, "inner": 5, "dimension": 4} | options)).learner


def batch(b=6):
    generator = torch.Generator().manual_seed(1)
    features = {m: torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b), generator, Epoch("train", 0, 1))


def test_the_divergence_is_that_of_normal_distributions():
    mean, log_variance = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum()
    torch.testing.assert_close(divergence(mean, log_variance), expected)
    assert float(divergence(torch.zeros(3, 2), torch.zeros(3, 2))) == 0


def latents(one, given, seed):
    """Draw as the loss draws: modality by modality from the process-wide generator."""
    torch.manual_seed(seed)
    found = {}
    for modality, features in given.features.items():
        inner = one.shared(one.own[modality](features))
        mean, log_variance = one.mean(inner), one.log_variance(inner)
        found[modality] = mean, log_variance, mean + torch.randn_like(mean) * (log_variance / 2).exp()
    return found


@torch.no_grad()
def test_the_loss_is_the_weighted_sum_of_its_five_parts_as_loops():
    one, given = learner(), batch()
    one.weights = WEIGHTS
    drawn = latents(one, given, 3)
    vae = label = center = correlation = 0.0
    for modality, (mean, log_variance, z) in drawn.items():
        rebuilt = one.outputs[modality](one.decoder(z))
        vae += float((rebuilt - given.features[modality]).square().mean())
        for m, s in zip(mean.flatten().tolist(), log_variance.flatten().tolist(), strict=True):
            vae += 0.5 * (m * m + math.exp(s) - 1 - s)
        for row, y in zip(z, given.labels.tolist(), strict=True):
            target = torch.eye(3)[y]
            label += float((one.classifier(row) - target).norm()) / 6
            center += 0.25 * float((row - one.centers[y]).square().sum()) / given.labels.tolist().count(y) / 6 / 2
    z = {m: found[2] for m, found in drawn.items()}
    for first, second in (("audio", "audio"), ("audio", "visual"), ("visual", "visual")):
        for i, x in enumerate(z[first]):
            for j, y in enumerate(z[second]):
                theta = float(torch.corrcoef(torch.stack([x, y]))[0, 1]) / 2
                same = bool(given.labels[i] == given.labels[j])
                correlation += (math.log(1 + math.exp(theta)) - theta * same) / 36
    apart = float((z["audio"] - z["visual"]).norm(dim=1).mean())
    torch.manual_seed(3)
    parts = one.players()["all"].loss(given)
    expected = 0.2 * vae + 0.3 * label + 0.4 * correlation + 0.5 * apart + 0.6 * center
    assert float(parts["loss"]) == pytest.approx(expected, rel=1e-4)


def test_centers_are_learned():
    one = learner()
    one.players()["all"].loss(batch())["loss"].backward()
    assert float(one.centers.grad.abs().min()) > 0


def test_centers_of_the_source_are_drawn_for_every_batch():
    one, given = learner(fidelity="source", center_weight=1.0), batch()
    assert not [name for name, _ in one.named_parameters() if "centers" in name]
    torch.manual_seed(0)
    first, second = (one.players()["all"].loss(given)["center_loss"] for _ in range(2))
    assert first != second
    with pytest.raises(InputError, match=r"method\.fidelity"):
        resolve({"method": {"name": "vae-cca", "fidelity": "faithful"}})


def test_a_class_counts_the_same_however_many_of_it_are_in_the_batch():
    vectors, centers = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]]), torch.zeros(2, 2)
    assert float(center_loss(vectors, torch.tensor([0, 0, 1]), centers)) == pytest.approx(
        0.25 * (0.5 * (1 + 9) + 4) / 3
    )


def test_the_embedding_is_the_mean_without_noise():
    one, given = learner().eval(), batch()
    first, second = (one.embed(given.features["audio"], "audio") for _ in range(2))
    assert torch.equal(first, second)
    torch.testing.assert_close(first, latents(one, given, 0)["audio"][0])


def test_a_huge_log_variance_overflows_nothing():
    one = learner()
    torch.nn.init.constant_(one.log_variance.bias, 1e4)
    loss = one.players()["all"].loss(batch())["loss"]
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in one.parameters() if p.grad is not None)
