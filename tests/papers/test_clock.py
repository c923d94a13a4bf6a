from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aadml.data.ave import AVE15, with_drawn_clock
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.papers.aadml_paper import drawn_sets


def with_clock(count):
    counts = np.array([count, 20]), np.array([12, 5]), np.array([12, 5])
    train, valid, test = (part.tolist() for part in counts)
    content = synthetic(classes=2, train=train, valid=valid, test=test, dimensions=(4, 5))
    return replace(content, class_names=("Clock", "Cat"))


def test_a_draw_of_clock_keeps_100_clips_and_all_others():
    content = with_clock(120)
    drawn = with_drawn_clock(content, 0)
    drawn_rows = [(label, split) for label, split in zip(drawn.labels.tolist(), drawn.splits, strict=True)]
    assert [drawn_rows.count((0, split)) for split in ("train", "valid", "test")] == list(AVE15["Clock"])
    assert sum(label == 1 for label, _ in drawn_rows) == 30
    assert with_drawn_clock(content, 0).ids == drawn.ids
    assert set(with_drawn_clock(content, 1).ids) != set(drawn.ids)
    for other, message in ((with_clock(70), "94 clips"), (replace(content, class_names=("A", "B")), "no class")):
        with pytest.raises(InputError, match=message):
            with_drawn_clock(other, 0)


def test_draws_are_made_if_there_are_clips_to_spare_else_the_reason_is_noted(tmp_path):
    notes = []
    write_features(tmp_path / "all.h5", with_clock(120))
    place, others = drawn_sets(str(tmp_path / "all.h5"), tmp_path, notes.append, with_others=True)
    assert [others[seed] for seed in (1, 2, 3, 4)] == [str(tmp_path / f"clock-draw={n}.h5") for n in (1, 2, 3, 4)]
    assert place == str(tmp_path / "clock-draw=0.h5")
    for seed, drawn in {0: place, **others}.items():
        assert read_features(Path(drawn)).ids == with_drawn_clock(with_clock(120), seed).ids
    assert "drawn by seed (130 of 174 clips are kept)" in notes[0]
    alone = drawn_sets(str(tmp_path / "all.h5"), tmp_path / "alone", notes.append, with_others=False)
    assert alone == (str(tmp_path / "alone" / "clock-draw=0.h5"), {})
    assert [*(tmp_path / "alone").iterdir()] == [Path(alone[0])]
    write_features(tmp_path / "few.h5", with_clock(70))
    assert drawn_sets(str(tmp_path / "few.h5"), tmp_path, notes.append, with_others=True) == (
        str(tmp_path / "few.h5"),
        {},
    )
    assert "not measured: Clock has 94 clips" in notes[-1]


def test_draws_of_other_data_are_replaced_as_long_as_there_are_no_runs(tmp_path):
    first, second = with_clock(120), synthetic(classes=2, train=[120, 20], valid=[12, 5], test=[12, 5], seed=1)
    write_features(tmp_path / "first.h5", first)
    write_features(tmp_path / "second.h5", replace(second, class_names=first.class_names))
    drawn = [drawn_sets(str(tmp_path / f"{n}.h5"), tmp_path, len, with_others=False)[0] for n in ("first", "second")]
    written = read_features(Path(drawn[1])).features["audio"]
    np.testing.assert_array_equal(written, with_drawn_clock(read_features(tmp_path / "second.h5"), 0).features["audio"])
    (tmp_path / "runs").mkdir()
    before = Path(drawn[1]).stat().st_mtime_ns
    drawn_sets(str(tmp_path / "second.h5"), tmp_path, len, with_others=False)
    assert Path(drawn[1]).stat().st_mtime_ns == before
