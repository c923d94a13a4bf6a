"""Every certificate holds: on the same weights and inputs, what is computed here is what the source computed."""

import ast
from pathlib import Path

import pytest
from certificates import CERTIFICATES, NOT_HELD, WITHOUT_EQUAL

HELD = [one for one in CERTIFICATES if one.file]
SECOND = [one for one in CERTIFICATES if not one.file]


def named(certificate):
    return f"{certificate.subject} against {certificate.file}"


def each(certificates):
    marked = {True: [pytest.mark.slow], False: []}
    return [pytest.param(one, marks=marked[one.slow], id=named(one)) for one in certificates]


def measured(certificate, references):
    if not (references.parent / certificate.folder).is_dir():
        pytest.skip("the trainings of released code are not here")
    return certificate.errors(references)


@pytest.mark.slow
@pytest.mark.parametrize("certificate", each(HELD))
def test_the_source_is_reproduced(certificate, references):
    errors = measured(certificate, references)
    assert set(errors) == {*certificate.compared, *certificate.repairs}
    assert {name: errors[name] for name in certificate.compared if not errors[name] <= certificate.tolerance} == {}


@pytest.mark.slow
@pytest.mark.parametrize("certificate", [pytest.param(one, id=f"training of {one.subject}") for one in SECOND])
def test_a_second_implementation_agrees(certificate):
    errors = certificate.errors(Path())
    assert set(errors) == {*certificate.compared, *certificate.repairs}
    assert {name: errors[name] for name in certificate.compared if not errors[name] <= certificate.tolerance} == {}
    assert {name: errors[name] for name in certificate.repairs if not errors[name] > 1e-4} == {}


def test_a_second_implementation_imports_nothing_of_the_product():
    tree = ast.parse((Path(__file__).parent / "certificates" / "second_implementations.py").read_text("utf-8"))
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {name.partition(".")[0] for name in froms | names} == {"collections", "torch"}


@pytest.mark.slow
@pytest.mark.parametrize("certificate", each(one for one in HELD if one.repairs))
def test_a_repair_makes_a_difference(certificate, references):
    errors = measured(certificate, references)
    assert {name: errors[name] for name in certificate.repairs if not errors[name] > 1e-4} == {}


def test_every_reference_is_used_or_has_no_equal_here(references):
    files = {str(path.relative_to(references).with_suffix("")) for path in references.rglob("*.npz")}
    certified = {one.file for one in HELD if one.folder == "references"}
    assert certified | set(WITHOUT_EQUAL) == files
    assert not certified & set(WITHOUT_EQUAL)


def test_every_training_of_released_code_is_held_or_has_a_reason(references):
    folder = references.parent / "training_references"
    if not folder.is_dir():
        pytest.skip("the trainings of released code are not here")
    files = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.npz")}
    certified = {one.file for one in HELD if one.folder == folder.name}
    assert certified | set(NOT_HELD) == files
    assert not certified & set(NOT_HELD)
