"""Every certificate holds: on the same weights and inputs, what is computed here is what the source computed."""

import pytest
from certificates import CERTIFICATES


def named(certificate):
    return f"{certificate.subject} against {certificate.file}"


@pytest.mark.parametrize("certificate", CERTIFICATES, ids=named)
def test_the_source_is_reproduced(certificate, references):
    errors = certificate.errors(references)
    assert set(errors) == {*certificate.compared, *certificate.repairs}
    assert {name: errors[name] for name in certificate.compared if not errors[name] <= certificate.tolerance} == {}


@pytest.mark.parametrize("certificate", [one for one in CERTIFICATES if one.repairs], ids=named)
def test_a_repair_makes_a_difference(certificate, references):
    errors = certificate.errors(references)
    assert {name: errors[name] for name in certificate.repairs if not errors[name] > 1e-4} == {}
