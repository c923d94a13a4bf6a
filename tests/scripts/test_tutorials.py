"""Every tutorial runs, and prints what its page shows; numbers may differ a little on other machines."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TOLERANCE = 0.05


def test_each_tutorial_has_a_question_and_a_page():
    assert len(SCRIPTS) == 8
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        assert text.startswith("# %% [markdown]\n# # ")
        assert "**Question:**" in text
        assert "# ## Next\n" in text
        page = script.with_suffix(".md").read_text(encoding="utf-8")
        cells = [cell.partition("\n")[2].strip() for cell in re.split(r"^# %%(?! \[markdown\])", text, flags=re.M)[1:]]
        assert all(f"```python\n{cell.partition('# %% [markdown]')[0].strip()}\n```" in page for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_its_page_shows(script, tmp_path):
    pytest.importorskip("matplotlib")
    if "import transformers" in script.read_text(encoding="utf-8"):
        pytest.importorskip("transformers")
    program = [sys.executable, "-m", "scripts.tutorials", script.stem, "-o", str(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-3000:]
    page, shown = (
        path.read_text(encoding="utf-8") for path in (tmp_path / f"{script.stem}.md", script.with_suffix(".md"))
    )
    assert NUMBER.sub("N", page) == NUMBER.sub("N", shown)
    for new, old in zip(NUMBER.findall(page), NUMBER.findall(shown), strict=True):
        assert abs(float(new) - float(old)) <= max(TOLERANCE, TOLERANCE * abs(float(old))), (new, old)
    figures = {path.name for path in script.parent.glob(f"{script.stem}-*.svg")}
    assert {path.name for path in tmp_path.glob("*.svg")} == figures
