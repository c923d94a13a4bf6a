"""LOSSES: every loss of a comparison, by the name it has in configs and on the command line."""

from collections.abc import Callable

from torch import nn

from aadml.comparison import Terms
from aadml.losses.angular import angular
from aadml.losses.contrastive import contrastive
from aadml.losses.cross_clr import cross_clr
from aadml.losses.daml import Daml
from aadml.losses.dsl import dsl
from aadml.losses.hdml import Hdml
from aadml.losses.hinge import hinge
from aadml.losses.n_pair import n_pair
from aadml.losses.nt_xent import nt_xent
from aadml.losses.posterior_nca import posterior_nca
from aadml.losses.ranking import ranking
from aadml.losses.supcon import supcon
from aadml.losses.triplet import triplet
from aadml.losses.triplet_weighted import triplet_weighted

Loss = Callable[..., Terms]
"""A pure function `(comparison, *, options) -> Terms`."""

LOSSES: dict[str, Loss | type[nn.Module]] = {
    "triplet": triplet,
    "triplet-weighted": triplet_weighted,
    "ranking": ranking,
    "contrastive": contrastive,
    "hinge": hinge,
    "n-pair": n_pair,
    "angular": angular,
    "supcon": supcon,
    "nt-xent": nt_xent,
    "cross-clr": cross_clr,
    "dsl": dsl,
    "posterior-nca": posterior_nca,
    "daml": Daml,
    "hdml": Hdml,
}
"""Losses; those that own parameters are classes, whose instances are called as the functions are (see Daml)."""
