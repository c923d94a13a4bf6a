"""LOSSES and LABEL_LOSSES: registries of all losses, by their names in configs and on the command line."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.registry import Registry

if TYPE_CHECKING:
    from torch import nn

    from aadml.losses.contract import LabelLossFunction, LossFunction

LOSSES: Registry["LossFunction | type[nn.Module]"] = Registry(
    "loss",
    {
        "triplet": "aadml.losses.triplet:triplet",
        "triplet-weighted": "aadml.losses.triplet_weighted:triplet_weighted",
        "ranking": "aadml.losses.ranking:ranking",
        "contrastive": "aadml.losses.contrastive:contrastive",
        "hinge": "aadml.losses.hinge:hinge",
        "n-pair": "aadml.losses.n_pair:n_pair",
        "angular": "aadml.losses.angular:angular",
        "multi-similarity": "aadml.losses.multi_similarity:multi_similarity",
        "supcon": "aadml.losses.supcon:supcon",
        "nt-xent": "aadml.losses.nt_xent:nt_xent",
        "cross-clr": "aadml.losses.cross_clr:cross_clr",
        "dsl": "aadml.losses.dsl:dsl",
        "posterior-nca": "aadml.losses.posterior_nca:posterior_nca",
        "proxy-nca": "aadml.losses.proxy_nca:ProxyNca",
        "proxy-anchor": "aadml.losses.proxy_anchor:ProxyAnchor",
        "soft-triple": "aadml.losses.soft_triple:SoftTriple",
        "arcface": "aadml.losses.arcface:ArcFace",
        "daml": "aadml.losses.daml:Daml",
        "hdml": "aadml.losses.hdml:Hdml",
    },
    group="aadml.losses",
    of="aadml.losses.contract:LossFunction",
)
"""Pure functions `(comparison, *, options) -> Terms`. A loss with parameters is a class, and its instances are
called in the same way (see Daml)."""

OF_EACH_ANCHOR = frozenset(
    {
        "triplet", "triplet-weighted", "ranking", "contrastive", "hinge", "angular", "multi-similarity", "supcon",
        "nt-xent", "cross-clr", "posterior-nca",
    }
)  # fmt: skip
"""Losses whose anchors may be divided among processes: losses without a penalty and without terms that depend on other
anchors or on random draws. Every process computes any other loss for all anchors."""

WEIGHS_POSITIVES = ("nt-xent", "supcon", "cross-clr", "n-pair", "dsl")
"""Losses that weight positives by the shares of a comparison (soft targets)."""

TRAINS_WITHOUT_NEGATIVES = ("supcon", "cross-clr", "dsl")
"""Losses of WEIGHS_POSITIVES whose positives compete with each other, with any options. Without negatives, the loss of
an anchor with several positives still has a gradient."""

LABEL_LOSSES: Registry["LabelLossFunction"] = Registry(
    "label loss",
    {
        "row-norm": "aadml.losses.label_losses:row_norm",
        "frobenius": "aadml.losses.label_losses:frobenius",
        "mse": "aadml.losses.label_losses:mse",
        "ce": "aadml.losses.label_losses:ce",
    },
    group="aadml.label_losses",
    of="aadml.losses.contract:LabelLossFunction",
)
"""Pure functions `(outputs (b, C), labels (b,), *, options) -> scalar`: a distance of outputs from their labels."""
