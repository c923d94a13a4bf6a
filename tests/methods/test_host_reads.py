"""A whole training step reads at most one value on the host, as `tests/test_gpu.py` counts on a GPU.

Not counted are reads that happen only on the CPU, and whether a loss is finite, which fused Adam reads on a GPU.
"""

import linecache
import traceback

import pytest

from aadml.comparison import host_reads
from aadml.losses import LOSSES
from aadml.methods.training.optimization import Optimization
from tests.losses.test_host_reads import HostReads
from tests.methods import test_laws as laws

ON_THE_CPU_ALONE = {
    "losses/kernels/violations.py": "a GPU searches without reading the numbers of positives and negatives",
    "comparison/masks.py": "positives are read by column on the CPU alone",
    "losses/kernels/partners.py": "pairs of partners are taken from one score matrix on the CPU alone",
    "losses/angular.py": "all anchors are one group on a GPU",
}
LINES = {
    "one_hot(": "torch checks the classes on the CPU alone",
    "optimizer.step()": "torch steps tensor by tensor on the CPU alone",
    "elif not finite:": "fused Adam reads the flag on the GPU",
    "int(self.draws)": "the number of draws stays on the CPU",
    "return first.nonzero()": "a GPU finds the rows of known classes without a read",
}
LEARNED = sorted(set(laws.NAMES) - {"random", "cca", "c-cca", "kcca"})


class Reads(HostReads):
    """Places, `file:line`, at which the host reads values, but those that a GPU does not have."""

    def note(self, name):
        frame = next(f for f in reversed(traceback.extract_stack()) if "/aadml/" in f.filename)
        file, line = frame.filename.rpartition("/aadml/")[2], linecache.getline(frame.filename, frame.lineno)
        if file not in ON_THE_CPU_ALONE and not any(part in line for part in LINES):
            self.names.append(f"{file}:{frame.lineno} {name}")


def most_reads(monkeypatch, name, *settings):
    """Return the reads of the step with the most reads, without the first step of an epoch, which is probed."""
    monkeypatch.setattr(host_reads, "UNKEPT", ())  # as on a GPU
    model = laws.built(name, "training.epochs=2", "training.batch=20", *settings)
    step, reads, steps = Optimization.step, Reads(monkeypatch), []

    def stepped(*arguments, first=False, probed=False):
        if first:
            return step(*arguments, first=first, probed=probed)
        reads.names.clear()
        with reads:
            parts = step(*arguments)
        steps.append([*reads.names])
        return parts

    monkeypatch.setattr(Optimization, "step", stepped)
    laws.fit(model)
    return max(steps, key=len)


@pytest.mark.parametrize("name", LEARNED)
def test_a_step_of_a_method_reads_at_most_one_value(monkeypatch, name):
    places = most_reads(monkeypatch, name)
    assert len(places) <= 1, places


@pytest.mark.parametrize("proxy", ["", "aa-"])
@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_step_with_a_loss_reads_at_most_one_value(monkeypatch, name, proxy):
    places = most_reads(monkeypatch, "aadml", f"loss={proxy}{name}")
    assert len(places) <= 1, places
