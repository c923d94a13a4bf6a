"""Gradients of several processes add up to those of one, in messages of a bounded size."""

import pytest


@pytest.mark.slow
def test_gradients_of_workers_are_summed_or_refused(tmp_path, job):
    program = tmp_path / "gradients.py"
    program.write_text(
        "import torch\n"
        "from torch import distributed, nn\n"
        "from torch.utils.checkpoint import checkpoint\n"
        "from aadml.comparison.processes import group\n"
        "from aadml.comparison.processes.gradients import summed_gradients\n"
        "from aadml.feature_extraction.ground.errors import InputError\n"
        "torch.manual_seed(0)\n"
        "layer, rows = nn.Linear(3, 3), torch.randn(4, 3, requires_grad=True)\n"
        "with group.joined(), group.divided():\n"
        "    with summed_gradients([layer.weight]):  # one worker has no gradient\n"
        "        if group.is_first():\n"
        "            layer(rows).sum().backward()\n"
        "    print(torch.allclose(layer.weight.grad, rows.sum(0).detach().expand(3, 3)))\n"
        "    layer.zero_grad()\n"
        "    try:\n"
        "        with summed_gradients([layer.weight]):\n"
        "            x = checkpoint(layer, rows, use_reentrant=True)\n"
        "            checkpoint(layer, x, use_reentrant=True).sum().backward()\n"
        "    except InputError as error:\n"
        "        print('several parts' in str(error))\n"
        "distributed.init_process_group('cuda:gloo')\n"
        "try:\n"
        "    with group.joined():\n"
        "        pass\n"
        "except InputError as error:\n"
        "    print('without a backend' in str(error))\n"
    )
    assert [(code, out) for code, out, _ in job(program)] == [(0, "True\n" * 3)] * 2
