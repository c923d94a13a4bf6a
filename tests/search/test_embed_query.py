"""Queries that are refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from aadml.feature_extraction.ground.errors import InputError, UntrustedCodeError
from aadml.search import Index, embed_query


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({}, "nothing was passed; pass exactly one of"),
        ({"audio": "a.wav", "visual": "b.jpg"}, "audio and visual were passed together; pass exactly one"),
        ({"audio": "no such.wav"}, "does not exist"),
        ({"audio": [1.0, 2.0]}, "one row of 6"),
        ({"audio": np.zeros((2, 6))}, "one row of 6"),
        ({"audio": np.zeros(6), "k": 0}, "^Index.search: k is 0; pass a number from 1 to"),
        ({"audio": np.zeros(6), "where": "weather = 1"}, "no such column: weather; choose from id, split, label"),
        ({"audio": np.zeros(6), "to": "text"}, "has no text vectors; choose from audio, visual"),
    ],
)
def test_a_wrong_question_is_refused(features, tmp_path, question, says):
    index = Index.build(features, tmp_path / "i")
    with pytest.raises(InputError, match=says):
        index.search(**{"to": "audio", **question})


@pytest.mark.parametrize(
    ("path", "fails", "expected"),
    [
        ("a.mp4", (), ["audio", "visual"]),
        ("a.mp4", ("audio",), ["visual"]),
        ("a.mp4", ("visual",), ["audio"]),
        ("a.mp4", ("audio", "visual"), "audio is silent"),
        ("a.wav", (), ["audio"]),
        ("a.wav", ("audio",), "audio is silent"),
        (
            "a.txt",
            "all",
            "a.txt has no modality that can be compared with text; pass another file, or search another modality",
        ),
    ],
)
def test_a_clip_is_embedded_in_the_modalities_that_can_be_read(monkeypatch, path, fails, expected):
    def embedded(encoder, modality, paths, to):
        if modality in fails:
            raise InputError(f"{modality} is silent")
        return modality, paths, to

    monkeypatch.setattr(embed_query, "embed_media", embedded)
    encoder = SimpleNamespace(can_query=lambda *_: fails != "all")
    if isinstance(expected, str):
        with pytest.raises(InputError) as refused:
            embed_query.embed_query(encoder, "clip", path, "text")
        assert str(refused.value) == expected
    else:
        found = embed_query.embed_query(encoder, "clip", path, "text")
        assert found == {modality: (modality, [path], "text") for modality in expected}


def test_the_error_of_a_clip_keeps_its_class(monkeypatch):
    def untrusted(*_):
        raise UntrustedCodeError("named by a file")

    monkeypatch.setattr(embed_query, "embed_media", untrusted)
    encoder = SimpleNamespace(can_query=lambda *_: True)
    with pytest.raises(UntrustedCodeError, match="named by a file"):
        embed_query.embed_query(encoder, "clip", "a.mp4", "audio")
