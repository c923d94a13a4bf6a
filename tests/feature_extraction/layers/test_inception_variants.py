import logging
import re
from types import SimpleNamespace

import pytest
import torch

from aadml.feature_extraction.backbones.inception_v3 import inception_v3
from aadml.feature_extraction.layers.inception_variants import InceptionVariant, VariantOptions, variant_of
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


@pytest.mark.parametrize(
    ("published", "classes", "auxiliary", "variant", "doubtful"),
    [
        ("inception-v3", None, False, ("counted", "average", True), []),
        ("inception-v3-gluon", 1000, False, ("counted", "average", False), []),
        ("inception-v3-2015", 1000, False, ("excluded", "max", True), []),
        ("", 1008, False, ("excluded", "max", True), []),
        ("", 1000, True, ("counted", "average", True), []),
        ("", 1000, False, ("counted", "average", True), ["transform_input"]),
        ("", 999, True, ("counted", "average", True), ["transform_input"]),
        ("", None, True, ("counted", "average", True), ["pool_padding", "last_pool", "transform_input"]),
    ],
)
def test_the_content_of_a_file_determines_its_variant_or_a_warning_names_the_guesses(
    caplog, published, classes, auxiliary, variant, doubtful
):
    tensors = {} if classes is None else {"fc.weight": torch.zeros(classes, 2)}
    tensors |= {"AuxLogits.fc.weight": torch.zeros(1)} if auxiliary else {}
    file = SimpleNamespace(published=published, tensors=tensors, name="own")
    assert variant_of(file, VariantOptions()) == InceptionVariant(*variant)
    assert re.findall(r"visual\.(\w+)=", caplog.text) == doubtful
    if doubtful:
        assert (
            f"the content does not determine {' and '.join(doubtful)}, so torchvision's values are used" in caplog.text
        )
        assert "(pool_padding counted, last_pool average, transform_input true)" in caplog.text
    caplog.clear()
    known = VariantOptions(pool_padding="excluded", last_pool="max", transform_input=False)
    assert variant_of(file, known) == InceptionVariant("excluded", "max", False)
    assert caplog.text == ""


def test_a_head_that_is_not_a_matrix_determines_nothing(caplog):
    variant_of(SimpleNamespace(published="", tensors={"fc.weight": torch.zeros(1008)}, name="own"), VariantOptions())
    assert caplog.text.count("--set visual.") == 3
