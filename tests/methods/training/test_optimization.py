"""Optimizers: torch's own steps, without an import of its compiler."""

import subprocess
import sys

import pytest
import torch

from aadml.methods.training.optimization import build_optimizer
from aadml.methods.training.settings import OPTIMIZERS, Training

TRAINING = """
import sys, aadml
for loss in ("aa-triplet", "proxy-anchor"):
    aadml.fit("synthetic:ave", loss=loss, epochs=1, settings={"network.hidden": [8], "training.train_map": 0})
assert "torch._dynamo" not in sys.modules, "the compiler was imported"
"""


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_and_states_are_those_of_torch(name):
    generator = torch.Generator().manual_seed(0)
    start, gradients = torch.randn(7, 3, generator=generator), torch.randn(4, 7, 3, generator=generator)
    ours, torchs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    settings = Training(optimizer=name, learning_rate=0.01, weight_decay=0.1)
    built = build_optimizer([ours], settings)
    plain = OPTIMIZERS[name](
        [torchs], **{k: built.defaults[k] for k in ("lr", "weight_decay", "fused") if k in built.defaults}
    )
    for step, gradient in enumerate(gradients):
        built.zero_grad(set_to_none=True)
        ours.grad, torchs.grad = gradient.clone(), gradient.clone()
        built.step()
        plain.step()
        assert torch.equal(ours, torchs)
        if step == 1:
            state = built.state_dict()
            built = build_optimizer([ours], settings)
            built.load_state_dict(state)
    assert isinstance(built, OPTIMIZERS[name])


def test_a_training_does_not_import_the_compiler(tmp_path):
    done = subprocess.run([sys.executable, "-c", TRAINING], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
