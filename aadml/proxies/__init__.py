"""PROXIES: registry of the classes that compute the representation of a clip in a loss."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.registry import Registry, lookup

if TYPE_CHECKING:
    from aadml.proxies.contract import ProxyFactory

PROXIES: Registry["ProxyFactory"] = Registry(
    "proxy",
    {
        "identity": "aadml.proxies.identity:Identity",
        "anchor-aware": "aadml.proxies.anchor_aware:AnchorAware",
        "class-mean": "aadml.proxies.class_mean:ClassMean",
        "expansion": "aadml.proxies.expansion:Expansion",
        "memory": "aadml.proxies.memory:Memory",
    },
    group="aadml.proxies",
    of="aadml.proxies.contract:ProxyFactory",
)
"""Classes by name, called as `(dimension, modalities, *, options) -> Proxy`. The attribute `prefix` of a class is added
to the names of losses ("aa-"); see `prefix_of`."""


def prefix_of(name: str) -> str:
    """Return the prefix that a proxy adds to the names of losses; "" only for the identity.

    The default, also for an empty `prefix`, is the name of the proxy and a hyphen; hyphens also replace colons.

    Raises:
        InputError: the proxy does not exist.
    """
    entry = lookup(PROXIES, name, "proxy")
    if entry is PROXIES["identity"]:
        return ""
    return str(getattr(entry, "prefix", "") or f"{name.replace(':', '-')}-")
