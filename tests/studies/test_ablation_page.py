"""The page of an ablation: which lines are drawn."""

import numpy as np
import pytest

from aadml.configuration.config import resolve
from aadml.studies import ablation_page
from aadml.studies.ablation_grid import Ablation
from aadml.studies.grid import Cell
from aadml.studies.results import CellScores
from aadml.studies.sweep_figures import Band


@pytest.mark.parametrize(("cutoffs", "drawn"), [(1, False), (2, True), (3, True)])
def test_precision_over_k_is_drawn_where_it_is_a_line(monkeypatch, cutoffs, drawn):
    cell = Cell("a", resolve({"method": "cca", "data": "x"}), {})
    band = Band(list(range(cutoffs)), np.zeros((1, cutoffs)))
    monkeypatch.setattr(ablation_page.sweep_figures, "scope_band", lambda *_, **__: band)
    monkeypatch.setattr(ablation_page.sweep_figures, "epoch_band", lambda *_, **__: None)
    monkeypatch.setattr(CellScores, "directions", ("audio-visual",))
    bands = ablation_page._bands(Ablation((), (cell,), {}, (0,)), {"a": CellScores(cell, {0: None})})
    assert bands == ({("Scope", "precision@K, audio-visual"): {"a": band}} if drawn else {})
