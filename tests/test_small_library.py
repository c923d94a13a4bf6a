"""Losses, evaluation and audit on arrays need no code of HDF5, media and configs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import aadml
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "own_loop.md").read_text(encoding="utf-8")
LOOP = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL))
ABSENT = [
    "h5py", "av", "cv2", "yaml", "pydantic", "click", "aadml.configuration", "aadml.cli",
    "aadml.feature_extraction.media", "aadml.feature_extraction.feature_file.reading",
    "aadml.feature_extraction.foreign.hdf5",
]  # fmt: skip


@pytest.mark.slow
def test_the_page_runs_without_code_of_files_media_and_configs(tmp_path):
    end = f"import sys; print('imported:', sorted(set({ABSENT!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{LOOP}\n{end}"], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *printed, imported = done.stdout.strip().splitlines()
    assert imported == "imported: []"
    shown = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert "\n".join(printed) == "\n".join(shown).strip()


def test_clips_are_scored_as_the_embeddings_of_their_vectors(clips):
    by_clips = aadml.evaluate(embeddings=clips)
    by_embeddings = aadml.evaluate(embeddings=clips.embedded(clips.matrices))
    assert by_clips.to_dict() == by_embeddings.to_dict()
    assert by_clips.split == "all"


def test_an_encoder_is_audited_on_data_in_memory(clips):
    blind = aadml.audit(encoder=lambda features, labels: features, data=clips)
    assert not any(finding.failed for finding in blind)
    leaking = aadml.audit(
        encoder=lambda features, labels: {m: v + labels[:, None] for m, v in features.items()}, data=clips
    )
    assert {finding.check for finding in leaking if finding.failed} >= {"label blindness"}


def test_clips_have_no_training_split_to_audit(clips):
    with pytest.raises(InputError, match="split is 'train', but all of the Clips are scored; leave out split"):
        aadml.audit(encoder=lambda features, labels: features, data=clips, split="train")


@pytest.fixture
def clips():
    return to_splits(synthetic(classes=3, train=3, valid=3, test=30, dimensions=(6, 6), difficulty=0.2)).test
