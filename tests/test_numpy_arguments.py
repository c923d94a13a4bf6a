"""NumPy values as arguments of public functions: the same result as Python's own."""

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError

SMALL = {"network.hidden": [8], "training.batch": 200}


def test_a_training_takes_numpy_scalars_wherever_numbers_are_taken():
    settings = {"network.hidden": np.array([8]), "training.batch": np.int32(200), "inputs.clamp": np.float32(3)}
    found = aadml.fit(
        "synthetic:ave", loss=np.str_("aa-triplet"), seed=np.int64(3), epochs=np.uint8(1), k=np.int16(2),
        settings=settings,
    )  # fmt: skip
    plainly = aadml.fit(
        "synthetic:ave", loss="aa-triplet", seed=3, epochs=1, k=2, settings=SMALL | {"inputs.clamp": 3.0}
    )
    assert found.evaluation["map_mean"] == plainly.evaluation["map_mean"]
    assert found.facts == plainly.facts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": np.float64(1.5)}, "fit: seed has type float; pass a whole number or None"),
        ({"seed": np.array([1, 2])}, "fit: seed has type list"),
        ({"epochs": np.bool_(True)}, "fit: epochs has type bool"),
        ({"modalities": np.array(3)}, "fit: modalities has type int"),
        ({"trust_code": "yes"}, "fit: trust_code has type str; pass True or False"),
    ],
)
def test_numpy_values_of_a_wrong_kind_are_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message):
        aadml.fit("synthetic:ave", **arguments)


def test_names_may_stand_in_an_array():
    splits = aadml.read("synthetic:ave", seed=np.int64(0))
    model = aadml.fit(splits, method="cca", modalities=np.array(["audio", "visual"]))
    assert aadml.evaluate(model, data=splits, metrics=np.array(["recall@3"]), queries=np.int64(20)).split == "test"
