"""Losses that own proxies of classes against their released code: on the same vectors and proxies."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from certificates.certificate import Arrays, Certificate, Errors, error, leaves, value_and_gradients, worst
from certificates.losses import CLOSE, PML, minimized, objective

MERGED = "Without the penalty that merges centers, which is an option there."
COMPARED = ("loss", "gradient", "gradient of the proxies")


def _given(arrays: Arrays, name: str) -> Tensor:
    """Lay proxies out as rows: the source has some of them as columns."""
    values: Tensor = arrays[name]
    return values if values.shape[1] == arrays["in_first"].shape[1] else values.T


def _certificate(name: str, weight: str, source: str, options: Mapping[str, Any]) -> Certificate:
    def measure(arrays: Arrays) -> Errors:
        of = objective({"name": name} | options).double()
        proxies: Any = of.losses[0]
        with torch.no_grad():
            proxies.proxies.copy_(_given(arrays, f"weight_{weight}"))
        points = leaves(arrays, "in_first", "in_second")
        every = [*points, proxies.proxies]
        value, gradients = value_and_gradients(minimized(of, *points, arrays["labels"]), every)
        expected = [arrays[f"grad_together_wrt_{side}"] for side in ("first", "second")]
        return {
            "loss": error(value, arrays["loss_together"]),
            "gradient": worst(list(zip(gradients[:2], expected, strict=True))),
            "gradient of the proxies": error(gradients[2], _given(arrays, f"grad_together_wrt_weight_{weight}")),
        }

    file = f"audio_visual/pml_{name.replace('-', '_')}"
    words = MERGED if name == "soft-triple" else ""
    return Certificate(name, file, f"{PML}, `{source}`", COMPARED, measure, tolerance=CLOSE, deviations=words)


CLASS_PROXY_CERTIFICATES = (
    _certificate("proxy-nca", "proxies", "ProxyNCALoss", {"temperature": 1 / 3}),
    _certificate("proxy-anchor", "proxies", "ProxyAnchorLoss", {}),
    _certificate("soft-triple", "fc", "SoftTripleLoss", {"centers": 3, "merge": 0.0}),
    _certificate("arcface", "W", "ArcFaceLoss", {}),
)
