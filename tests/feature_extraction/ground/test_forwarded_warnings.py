"""Warnings of Python and of the logger are delivered once each, to the function of the last call."""

import logging
import warnings

import pytest

from aadml.feature_extraction.ground.forwarded_warnings import forward_warnings


@pytest.fixture
def handlers(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(logging.getLogger("aadml"), "handlers", [])


@pytest.mark.usefixtures("handlers")
def test_a_warning_is_delivered_once_however_often_a_program_begins():
    first, last = [], []
    forward_warnings(first.append)
    forward_warnings(last.append)
    logging.getLogger("aadml").warning("%d clips", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("a clip is short", stacklevel=1)
    assert (first, last) == ([], ["3 clips", "a clip is short"])
