"""The verdict and the map of the page of a run."""

from types import SimpleNamespace

import pytest
import torch

from aadml.comparison.embeddings import Embeddings

run_page = pytest.importorskip("aadml.reports.run_page")


def verdict(**intervals):
    directions = {name: SimpleNamespace(map_interval=one, chance=0.5) for name, one in intervals.items()}
    return run_page._verdict(SimpleNamespace(directions=directions))


@pytest.mark.parametrize(
    ("intervals", "words"),
    [
        ({"ab": (0.6, 0.7), "ba": (0.6, 0.7)}, "Better than chance in every direction"),
        ({"ab": (0.6, 0.7), "ba": (0.4, 0.7)}, "not in the direction ba, whose 95 % interval reaches it"),
        (
            {"ab": (0.6, 0.7), "ba": (0.4, 0.7), "ac": (0.4, 0.7), "ca": (0.3, 0.7)},
            "not in the directions ba, ac and ca, whose 95 % intervals reach it",
        ),
        ({"ab": (0.4, 0.7), "ba": (0.3, 0.4)}, "Cannot be distinguished from chance"),
        ({"ab": (0.2, 0.4), "ba": (0.3, 0.4)}, "Worse than chance in every direction"),
    ],
)
def test_the_verdict_follows_the_intervals(intervals, words):
    assert words in verdict(**intervals)


def test_a_clip_without_a_modality_has_no_point_of_that_modality(monkeypatch):
    pytest.importorskip("matplotlib")
    shown = {}
    monkeypatch.setattr(
        run_page.figures, "class_map", lambda points, labels, _: shown.update(p=points, l=labels) or "<svg "
    )
    vectors = {
        m: torch.randn(6, 4, generator=torch.Generator().manual_seed(n)) for n, m in enumerate(("audio", "text"))
    }
    lacking = torch.tensor([True, False, True, True, False, True])
    run_page._map(
        Embeddings(vectors, torch.arange(6) % 2, tuple("abcdef"), class_names=("x", "y"), present={"text": lacking})
    )
    assert {m: len(places) for m, places in shown["p"].items()} == {"audio": 6, "text": 4}
    assert shown["l"]["text"].tolist() == [0, 0, 1, 1]
