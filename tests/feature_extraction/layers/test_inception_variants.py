import logging

import pytest

from aadml.feature_extraction.backbones.inception_v3 import inception_v3
from aadml.feature_extraction.layers.inception_variants import InceptionVariant, VariantOptions
from aadml.feature_extraction.weights.tensor_files import write_tensors
from tests.feature_extraction.inception_files import published_tensors


def test_1008_classes_mean_the_graph_of_2015(tmp_path, caplog):
    path = tmp_path / "own.safetensors"
    write_tensors(path, published_tensors(1008, auxiliary=False))
    assert inception_v3(weights=str(path)).parameters["last_pool"] == "max"
    assert caplog.text == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "auxiliary", "doubtful"),
    [
        (1000, True, []),
        (1000, False, ["transform_input"]),
        (10, True, ["transform_input"]),
        (0, False, ["pool_padding", "last_pool", "transform_input"]),
    ],
)
def test_unknown_fields_are_a_warning_with_their_options(tmp_path, caplog, classes, auxiliary, doubtful):
    path = tmp_path / "own.safetensors"
    write_tensors(path, published_tensors(classes, auxiliary=auxiliary))
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
