"""Whatever goes wrong, nothing that a user may have put into a folder is removed."""

from pathlib import Path

import pytest

CONFIGS = {
    "data that is gone": "method: dcca\ndata: /nowhere/at/all.h5\n",
    "an unknown method": "method: dccca\n",
    "not a config": "- just\n- a\n- list\n",
    "not YAML": "{",
    "no config at all": None,
}


def contents(folder: Path) -> dict[str, bytes]:
    """Every path below a folder, with the bytes of the files."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("name", CONFIGS)
def test_resuming_a_folder_that_is_no_run_touches_nothing(name, aadml, tmp_path):
    folder = tmp_path / "thesis"
    (folder / "chapters").mkdir(parents=True)
    (folder / "chapters" / "one.tex").write_text("Once upon a time")
    if CONFIGS[name] is not None:
        (folder / "config.yaml").write_text(CONFIGS[name])
    before = contents(folder)
    code, _, err = aadml("train", "--resume", folder)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert contents(folder) == before


def test_a_trained_run_survives_the_loss_of_its_data(aadml, own_run, features):
    (own_run / "evaluation.json").unlink()  # as after a kill in the final evaluation
    features.rename(features.with_name("renamed.h5"))
    before = contents(own_run)
    code, _, err = aadml("train", "--resume", own_run)
    assert code == 2
    assert str(features) in err
    assert contents(own_run) == before


def test_a_new_run_that_cannot_begin_leaves_no_folder(aadml, features, tmp_path):
    code, _, _ = aadml("train", "--data", features, "--runs", tmp_path / "runs", "--loss", "aa-triplet", "--k", 1000)
    assert code == 2
    assert not (tmp_path / "runs").exists()
