"""Extractors that a model names: built again from what a file says, which may come from a stranger."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import aadml
from aadml.feature_extraction.backbones import EXTRACTORS
from aadml.feature_extraction.backbones.descriptors import log_mel
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.table import WEIGHTS, verify
from aadml.model import media


@pytest.fixture
def asked_for(monkeypatch):
    """The options with which an extractor was built."""
    options = {}

    def built(name, modality, given):
        options.update(given)
        return log_mel()

    monkeypatch.setattr(media, "extractor", built)
    return options


@pytest.mark.parametrize("place", ["/tmp/saved_model", "https://example.org/model", "saved_model", "~/x"])
@pytest.mark.parametrize("where", ["parameters", "source"])
@pytest.mark.parametrize("name", ["vggish-hub", EXTRACTORS["audio"].places["vggish-hub"]])
def test_weights_at_a_place_that_a_file_names_are_not_opened(asked_for, name, place, where):
    origin = {"extractor": name, "parameters": {}, where: {"weights": place}}
    facts = replace(aadml.fit("synthetic:ave", method="cca").facts, features={"audio": origin})
    with pytest.raises(InputError, match="installed extractor differs"):
        media.extractor_of(facts, "audio")
    assert asked_for["weights"] == "auto"


def test_weights_are_found_by_their_recorded_checksum_and_otherwise_not_replaced(asked_for, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    (tmp_path / "weights").mkdir()
    file = tmp_path / "weights" / WEIGHTS["inception-v3-tf"].file
    file.write_bytes(b"weights")
    checksum = verify("inception-v3-tf")
    fitted = aadml.fit("synthetic:ave", method="cca").facts

    def facts(modality, name, weights):
        return replace(fitted, features={modality: {"extractor": name, "parameters": {"weights": weights}}})

    with pytest.raises(InputError, match="installed extractor differs"):
        media.extractor_of(facts("visual", "inception-v3", checksum), "visual")
    assert asked_for.pop("weights") == str(file)
    with pytest.raises(InputError, match=r"weights of inception-v3 \(SHA-256 7{16}...\) are .* pass features"):
        media.extractor_of(facts("visual", "inception-v3", "7" * 64), "visual")
    assert not asked_for
    with pytest.raises(InputError, match="installed extractor differs"):
        media.extractor_of(facts("audio", "vggish", "7" * 64), "audio")
    assert asked_for["weights"] == "auto"


@pytest.mark.parametrize("name", ["hf-text", EXTRACTORS["text"].places["hf-text"], "hf:stranger/huge"])
def test_a_network_that_a_file_names_is_not_downloaded(monkeypatch, name):
    named = []
    monkeypatch.setattr(media, "require_download_consent", lambda *source: named.append(source) or refuse())
    source = {} if name.startswith("hf:") else {"source": {"model": "stranger/huge", "revision": "abc"}}
    facts = replace(aadml.fit("synthetic:ave", method="cca").facts, features={"text": {"extractor": name, **source}})
    with pytest.raises(InputError, match="refused"):
        media.extractor_of(facts, "text")
    assert named == [("stranger/huge", "abc" if source else None)]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({}, "extractor of the model's features is unknown; train on features of `aadml extract`"),
        ({"audio": {"extractor": "absent"}}, "absent, is not installed; install the extractor"),
        (
            {"visual": {"extractor": "inception-v3", "parameters": {"weights": "0" * 64}}},
            "`aadml weights list` has them",
        ),
    ],
)
def test_features_without_a_known_extractor_can_be_passed_in_python(features, message):
    facts = replace(aadml.fit("synthetic:ave", method="cca").facts, features=features)
    with pytest.raises(InputError, match=f"{message}, or, in Python, pass features instead of files or words"):
        media.extractor_of(facts, next(iter(features), "audio"))


def refuse():
    raise InputError("refused")


def test_a_text_that_is_not_unicode_does_not_reach_an_extractor():
    with pytest.raises(InputError, match=r"text: '\\udcff' contains characters that are not Unicode; pass valid text"):
        media.extract_items(SimpleNamespace(modality="text"), ["a dog", "\udcff"])
