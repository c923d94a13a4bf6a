"""Controls and rivals of rows with an anchor-aware proxy."""

from aadml.configuration.config import resolve
from aadml.studies.control_rows import AFFINE, ALONE, CLASS_MEAN, HALF, MEMORY, NONE, RANDOM, UNIFORM, controls, rivals


def test_a_loss_that_stands_alone_has_no_control_of_half_its_weight_or_none():
    config = resolve({"method": "pairs", "loss": "aa-nt-xent"})
    assert set(controls(config)) == {ALONE, RANDOM}
    assert {ALONE, RANDOM, NONE} < set(controls(resolve({"method": "aadml", "loss": "aa-triplet"})))


def test_the_controls_of_a_proxy_change_one_thing_each(base):
    config = resolve(base | {"loss": {"name": "triplet", "weight": 2.0}})
    beside = controls(config)
    assert list(beside) == [ALONE, RANDOM, HALF, NONE]
    assert [bool(beside[name].prefix) for name in beside] == [False, True, False, False]
    assert beside[RANDOM]["proxy"] == config["proxy"] | {"neighbors": "random"}
    assert [beside[name]["loss"]["weight"] for name in beside] == [2.0, 2.0, 1.0, 0.0]
    for changed in beside.values():
        assert {k: v for k, v in changed.values.items() if k not in ("loss", "proxy")} == {
            k: v for k, v in config.values.items() if k not in ("loss", "proxy")
        }
    assert controls(beside[ALONE]) == {}


def test_the_rivals_of_a_proxy_take_its_place_and_its_share_of_the_loss(base):
    config = resolve(base | {"proxy": {"name": "anchor-aware", "aa_mix": 0.25, "residual": "convex", "k": 2}})
    beside = rivals(config)
    assert list(beside) == [MEMORY, CLASS_MEAN, UNIFORM, AFFINE]
    assert [other.section("proxy").name for other in beside.values()] == ["memory", "class-mean", *["anchor-aware"] * 2]
    mixed = {"aa_mix": 0.25, "aa_on": "all", "residual": "convex"}
    assert beside[CLASS_MEAN]["proxy"] == {"name": "class-mean"} | mixed
    assert beside[UNIFORM]["proxy"] == config["proxy"] | {"reading": "R3", "attention": "free", "temperature": 1e4}
    assert beside[AFFINE]["proxy"] == config["proxy"] | {"reading": "R1"}
    for changed in beside.values():
        assert changed.values | {"proxy": 0} == config.values | {"proxy": 0}
    assert AFFINE not in rivals(resolve(base | {"proxy": {"name": "anchor-aware", "attention": "free"}}))
    assert MEMORY not in rivals(resolve(base | {"loss": "aa-arcface"}))
    assert list(controls(beside[MEMORY])) == [ALONE, HALF, NONE]  # it has no neighbors that could be random
    assert rivals(beside[MEMORY]) == rivals(controls(config)[ALONE]) == {}
