"""PROTOCOLS: registry of evaluation protocols. Every score is stored with the name of its protocol."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.registry import Registry

if TYPE_CHECKING:
    from aadml.protocols.protocol import Protocol

PROTOCOLS: Registry["Protocol"] = Registry(
    "protocol",
    {
        "inductive": "aadml.protocols.protocol:INDUCTIVE",
        "unseen-classes": "aadml.protocols.disjoint:UNSEEN_CLASSES",
        "bank": "aadml.protocols.bank:BANK",
        "bank-expansion": "aadml.protocols.bank:BANK_EXPANSION",
        "inverted-softmax": "aadml.protocols.bank:INVERTED_SOFTMAX",
        "csls": "aadml.protocols.bank:CSLS",
        "legacy:label-graph": "aadml.protocols.leaks:LABEL_GRAPH",
        "legacy:batch-attention": "aadml.protocols.leaks:BATCH_ATTENTION",
        "legacy:partner": "aadml.protocols.leaks:PARTNER",
        "legacy:test-selection": "aadml.protocols.leaks:TEST_SELECTION",
        "legacy:running-map": "aadml.protocols.leaks:RUNNING_MAP",
        "legacy:test-scaling": "aadml.protocols.leaks:TEST_SCALING",
        "legacy:drop-last": "aadml.protocols.leaks:DROP_LAST",
    },
    group="aadml.protocols",
    of="aadml.protocols.protocol:Protocol",
)
"""Protocols by name. Those with the prefix `legacy:` leak information, to measure how much a leak inflates MAP."""
