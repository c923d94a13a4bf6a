"""Leaks inflate the score and carry their name."""

from aadml.protocols import PROTOCOLS
from aadml.protocols.evaluation import evaluate_under


def test_every_legacy_protocol_is_in_the_table_of_this_test():
    legacy = {name for name in PROTOCOLS if name.startswith("legacy:")}
    assert len(legacy) == 7


def test_leaks_inflate_and_carry_their_name(subject):
    honest = evaluate_under(subject, "inductive")
    for name in ("legacy:label-graph", "legacy:partner", "legacy:label-graph+legacy:running-map"):
        leaked = evaluate_under(subject, name)
        assert leaked.protocol == name
        assert leaked.map_mean > honest.map_mean + 0.02


def test_dropping_the_last_batch_scores_fewer_queries(subject):
    assert len(evaluate_under(subject, "legacy:drop-last").directions[0].ids) == 32
