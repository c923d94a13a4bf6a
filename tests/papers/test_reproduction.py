"""What is asked of a reproduction."""

from pathlib import Path

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.papers import reproduction
from aadml.papers.reproduction import reproduce
from aadml.studies.execution import log

FEATURES = "synthetic:ave"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"paper": "mie"}, "no paper 'mie'; did you mean"),
        ({"paper": "paper"}, "reproduce paper: no data were passed; pass --vegas F.h5, --ave G.h5, or both options"),
        ({"paper": "paper", "ave": FEATURES, "clotho": FEATURES},
         "reproduce paper uses vegas and ave, not clotho; leave out --clotho"),
        ({"paper": "mei", "vegas": FEATURES}, "reproduce mei uses audiocaps and clotho, not vegas; leave out --vegas"),
        ({"paper": "xie", "only": "table-1"}, "reproduce xie: the paper is not divided into parts; leave out --only"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_paper_is_refused_before_anything_is_written(tmp_path, asked, message):
    with pytest.raises(InputError, match=message):
        reproduce(**asked, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "results.csv").touch()
    with pytest.raises(InputError, match="do not belong to a study"):
        reproduce("mei", output=tmp_path)


@pytest.mark.parametrize(
    ("asked", "folder", "seeds"),
    [
        ({"paper": "paper", "ave": FEATURES, "vegas": FEATURES}, "paper", 5),
        ({"paper": "paper", "ave": FEATURES, "quick": True, "only": "table-3"}, "paper-quick", 2),
        ({"paper": "mei", "clotho": FEATURES, "seeds": 3}, "mei", 3),
        ({"paper": "xie", "quick": True, "seeds": 1}, "xie-quick", 1),
    ],
)
def test_a_paper_has_its_own_folder_and_fewer_seeds_if_it_is_shortened(monkeypatch, tmp_path, asked, folder, seeds):
    monkeypatch.chdir(tmp_path)
    of_paper, of_audio_text = [], []
    monkeypatch.setattr(reproduction, "reproduce_paper", lambda *given: of_paper.append(given))
    monkeypatch.setattr(reproduction, "reproduce_audio_text", lambda *given: of_audio_text.append(given))
    reproduce(**asked)
    ((*given, plan),) = [*of_paper, *of_audio_text]
    data = {name: FEATURES for name in ("vegas", "ave", "clotho") if name in asked}
    assert given == ([data, asked.get("only")] if of_paper else [asked["paper"], data])
    assert bool(of_paper) == (asked["paper"] == "paper")
    assert (plan.folder, plan.seeds) == (Path("reproductions", folder), range(seeds))
    assert (plan.quick, plan.note, plan.workers, plan.shard) == (asked.get("quick", False), log, None, None)
