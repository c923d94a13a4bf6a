import logging
from functools import partial

import pytest

from aadml.feature_extraction.backbones.inception_v3 import InceptionV3, inception_v3
from aadml.feature_extraction.frontends.inference import seeded
from aadml.feature_extraction.layers.inception_variants import InceptionVariant, VariantOptions
from aadml.feature_extraction.weights.tensor_files import write_tensors


def test_1008_classes_mean_the_graph_of_2015(tmp_path, caplog):
    path = tmp_path / "own.safetensors"
    write_tensors(path, seeded(partial(InceptionV3, last_pool="max", classes=1008, auxiliary=False)).state_dict())
    assert inception_v3(weights=str(path)).parameters["last_pool"] == "max"
    assert caplog.text == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "doubtful"),
    [
        (partial(InceptionV3), []),
        (partial(InceptionV3, auxiliary=False), ["transform_input"]),
        (partial(InceptionV3, classes=10), ["transform_input"]),
        (partial(InceptionV3, auxiliary=False, classes=0), ["pool_padding", "last_pool", "transform_input"]),
    ],
)
def test_unknown_fields_are_a_warning_with_their_options(tmp_path, caplog, build, doubtful):
    path = tmp_path / "own.safetensors"
    write_tensors(path, seeded(build).state_dict())
    with caplog.at_level(logging.WARNING):
        parameters = inception_v3(weights=str(path)).parameters
    assert {key: parameters[key] for key in vars(InceptionVariant())} == vars(InceptionVariant())
    for field in vars(InceptionVariant()):
        assert (f"--set visual.{field}=" in caplog.text) == (field in doubtful)
    caplog.clear()
    given = {"pool_padding": "excluded", "last_pool": "max", "transform_input": False}
    parameters = inception_v3(
        weights=str(path), variant=VariantOptions(**{key: given[key] for key in doubtful})
    ).parameters
    assert all(parameters[key] == given[key] for key in doubtful)
    assert caplog.text == ""


def test_every_field_of_a_variant_can_be_set():
    given = {"pool_padding": "excluded", "last_pool": "max", "transform_input": False}
    assert given.keys() == vars(InceptionVariant()).keys()
    parameters = inception_v3(weights="untrained", variant=VariantOptions(**given)).parameters
    assert {key: parameters[key] for key in given} == given
