"""Cross-batch memory against its released code, step by step."""

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.objective import Embedded, Objective
from aadml.objective.objective import ObjectiveOptions
from aadml.proxies.memory import Memory
from aadml.selections.all_pairs import everything
from certificates.certificate import Arrays, Certificate, Errors, error, value_and_gradients
from certificates.losses import CLOSE, PML

STEPS = 4


def released_contrastive(comparison: Comparison) -> Terms:
    """Cost pairs as the source's `ContrastiveLoss` does, with margins 0 and 1: means over pairs that cost."""
    units = [torch.nn.functional.normalize(side, dim=1) for side in (comparison.anchors, comparison.candidates)]
    distance = torch.cdist(*units, compute_mode="donot_use_mm_for_euclid_dist")
    total = torch.zeros(len(distance), dtype=distance.dtype)
    for gap, mask in ((distance, comparison.positives), (1 - distance, comparison.negatives)):
        cost = gap.relu().masked_fill(~mask, 0)
        total = total + cost.sum(1) / (cost > 0).sum().clamp_min(1)
    return Terms(total, (total > 0).long(), torch.ones_like(total))


def _in_order(arrays: Arrays, step: int, name: str) -> Tensor:
    """Lay the source's ring out, the oldest first."""
    ring: Tensor = arrays[f"step{step}_{name}_after"]
    at, stored = int(arrays[f"step{step}_queue_index_after"]), 8 * (step + 1)
    return ring[:stored] if stored <= len(ring) else torch.cat([ring[at:], ring[:at]])


def _measure(arrays: Arrays) -> Errors:
    memory = Memory(6, ("audio",), size=int(arrays["option_memory_size"]), batch="fixed")
    of = Objective(released_contrastive, everything, memory, directions=("audio-audio",), reduced=SUMMED)
    worst = {"loss": 0.0, "gradient": 0.0, "memory": 0.0}
    for step in range(STEPS):
        points, labels = arrays[f"step{step}_embeddings"].clone().requires_grad_(), arrays[f"step{step}_labels"]
        batch = Embedded({"audio": points}, labels, 8 * step + torch.arange(8))
        value, gradients = value_and_gradients(of(batch, torch.Generator())["loss"], [points])
        kept = memory.remembered
        assert kept is not None
        assert torch.equal(kept.groups, _in_order(arrays, step, "memory_labels"))
        found = {
            "loss": error(value, arrays[f"step{step}_loss"]),
            "gradient": error(gradients[0], arrays[f"step{step}_grad"]),
            "memory": error(kept.vectors["audio"], _in_order(arrays, step, "memory")),
        }
        worst = {name: max(worst[name], found[name]) for name in worst}
    return worst


SUMMED = ObjectiveOptions(reduction="sum")

MEMORY_CERTIFICATES = (
    Certificate(
        "xbm", "audio_visual/pml_xbm_contrastive", f"{PML}, `CrossBatchMemory`", ("loss", "gradient", "memory"),
        _measure, tolerance=CLOSE,
        deviations="Four steps of a queue, with `batch: fixed`, and with the source's contrastive loss, which is not "
        "the one here.",
    ),
)  # fmt: skip
