"""Every code block of README and of the pages is run by a test, or is listed here with the reason why not."""

import re
from pathlib import Path

import numpy as np
import pytest

import aadml

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "site").glob("*.md"))]
FLAGS = "needs data or networks of the user; tests/test_english.py checks commands and flags"
INSTALLS = "installs packages or reads a network"
BLOCKS = {
    "README.md": {"Install": INSTALLS, "In the shell": "tests/test_readme.py", "In Python": "tests/test_readme.py"},
    "audio_text.md": {
        "I have Clotho and a CLAP": "tests/test_task_pages.py",
        "I have clips and captions": "tests/test_task_pages.py",
        "Methods of the papers": FLAGS,
    },
    "audit.md": {},
    "encoders.md": {"": FLAGS},
    "extending.md": {"": "tests/test_extending.py"},
    "guide.md": {
        "A session": "tests/test_readme.py",
        "In a notebook": "tests/test_readme.py",
        "Models": "tests/test_readme.py",
        "Features": "tests/test_code_blocks.py",
        "Errors in Python": "tests/test_code_blocks.py",
        "Videos and sounds": FLAGS,
        "Long recordings": FLAGS,
        "Configs": FLAGS,
    },
    "install.md": {"": INSTALLS},
    "losses.md": {"": "tests/losses/test_page.py"},
    "mteb.md": {"": "tests/model/test_mteb.py"},
    "own_loop.md": {"": "tests/test_small_library.py"},
    "pairs.md": {"": "tests/test_task_pages.py"},
    "reproduce.md": {"": FLAGS},
    "scale.md": {"": FLAGS},
    "search.md": {"": FLAGS},
}
"""Page -> heading of a section, or "" for all other sections -> the test that runs its blocks, or why none does."""


def sections(page):
    """Yield heading and code blocks of the sections of a page that are written by hand."""
    text = re.sub(
        r"<!-- generated: (\S+) -->.*?<!-- end: \1 -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    heading, blocks, pieces = "", [], re.split(r"(^```.*?^```$|^#+ [^\n]*$)", text, flags=re.DOTALL | re.MULTILINE)
    for piece in pieces:
        if piece.startswith("#"):
            yield heading, blocks
            heading, blocks = piece.lstrip("# "), []
        elif piece.startswith("```"):
            language, _, code = piece[3:-3].partition("\n")
            blocks.append((language, code))
    yield heading, blocks


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_run_or_listed_with_a_reason(page):
    listed = BLOCKS.get(page.name, {})
    titles = {heading for heading, blocks in sections(page) if blocks}
    assert "" in listed or titles == {*listed}
    for reason in listed.values():
        if reason.startswith("tests/"):
            text = (ROOT / reason).read_text(encoding="utf-8")
            assert page.name in text, reason


def python_blocks(page=None):
    return [
        code for path in PAGES if page in (None, path.name) for _, blocks in sections(path)
        for language, code in blocks if language == "python"
    ]  # fmt: skip


def test_every_name_of_aadml_in_python_blocks_exists():
    names = {name for code in python_blocks() for name in re.findall(r"\baadml\.(\w+)", code)}
    assert len(names) > 10
    modules = {path.stem for path in (ROOT / "aadml").iterdir()}
    assert not names - {*aadml.__all__} - modules


def test_arrays_become_a_feature_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = [code for code in python_blocks("guide.md") if "np.savez" in code]
    draw = np.random.default_rng(0)
    arrays = {"AUDIO": draw.normal(size=(8, 3)), "VISUAL": draw.normal(size=(8, 4)), "LABELS": ["a", "b"] * 4}
    exec(code, arrays | {"SPLITS": ["train"] * 4 + ["test"] * 4})
    assert len(aadml.read("x.npz").test) == 4


def test_a_damaged_model_is_caught(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = [code for code in python_blocks("guide.md") if "DamagedFileError" in code]
    aadml.fit("synthetic:ave", method="cca").save("my-model")
    weights = Path("my-model", "model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-8])
    exec(code, {"aadml": aadml})
    assert capsys.readouterr().out.startswith("copy the model again: ")
