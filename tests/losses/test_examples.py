import inspect
from dataclasses import replace

import pytest
import torch
from torch import nn

from aadml.comparison import Comparison
from aadml.losses import LOSSES
from aadml.selections import SELECTIONS


def example(entry):
    return [line.strip()[4:] for line in inspect.getdoc(entry).splitlines() if line.strip().startswith(">>>")]


def surroundings(entry):
    """What somebody's training loop would hold: encoders, a batch of six clips, optimizers."""
    torch.manual_seed(0)
    bodies, heads = [nn.Sequential(nn.Linear(5, 6), nn.Tanh()) for _ in range(2)], [nn.Linear(6, 3) for _ in range(2)]
    inputs = [torch.randn(6, 5) for _ in range(2)]
    vectors = [head(body(x)) for head, body, x in zip(heads, bodies, inputs, strict=True)]
    encoders = [parameter for module in (*bodies, *heads) for parameter in module.parameters()]
    names = {"Comparison": Comparison, "SELECTIONS": SELECTIONS, "replace": replace, "torch": torch}
    names |= {"labels": torch.arange(6) % 3, "clips": torch.arange(6), "generator": torch.Generator()}
    names |= {"one_pair_a_class": SELECTIONS["one-pair-a-class"], "optimizer": torch.optim.SGD(encoders, 0.1)}
    if not inspect.isclass(entry):
        return names | {entry.__name__: entry, "audio": vectors[0], "visual": vectors[1], "text": vectors[1]}, encoders
    context = {"dimension": 3, "features": 6, "classes": 3}
    loss = entry(**{key: value for key, value in context.items() if key in inspect.signature(entry).parameters})
    names |= {"loss": loss, "audio": inputs[0], "visual": inputs[1]}
    names |= {"audio_body": bodies[0], "visual_body": bodies[1], "audio_head": heads[0], "visual_head": heads[1]}
    names |= {"encoder_optimizer": names["optimizer"], "generator_optimizer": torch.optim.SGD(loss.parameters(), 1e-5)}
    names |= {"proxy_optimizer": names["generator_optimizer"]}
    return names, encoders


@pytest.mark.parametrize("name", LOSSES)
def test_the_example_of_every_loss_trains_somebodys_encoders(name):
    lines = example(LOSSES[name])
    assert 5 <= len(lines) <= 7
    names, encoders = surroundings(LOSSES[name])
    before = [parameter.detach().clone() for parameter in encoders]
    for line in lines:
        exec(line, names)
    assert any(not torch.equal(old, new) for old, new in zip(before, encoders, strict=True))
    assert all(torch.isfinite(parameter).all() for parameter in encoders)
