"""A release: what its archives may hold, and who may publish them."""

import io
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from scripts import release_contents

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
WHEEL = (*release_contents.WHEEL_FILES, f"aadml-{VERSION}.dist-info/METADATA")


def write(folder, wheel=WHEEL, sdist=release_contents.SDIST_FILES):
    with zipfile.ZipFile(folder / f"aadml-{VERSION}-py3-none-any.whl", "w") as archive:
        for name in wheel:
            archive.writestr(name, "")
    with tarfile.open(folder / f"aadml-{VERSION}.tar.gz", "w:gz") as archive:
        for name in sdist:
            archive.addfile(tarfile.TarInfo(f"aadml-{VERSION}/{name}"), io.BytesIO())


def test_a_complete_release_passes(tmp_path):
    write(tmp_path)
    assert release_contents.check(tmp_path, f"v{VERSION}").startswith(f"aadml-{VERSION}-py3-none-any.whl: ")


@pytest.mark.parametrize(
    ("archives", "tag", "fault"),
    [
        ({"wheel": (*WHEEL, "tests/test_x.py")}, None, "may install only aadml"),
        ({"wheel": WHEEL[1:]}, None, "lacks aadml/py.typed"),
        ({"sdist": ("README.md",)}, None, "lacks pyproject.toml"),
        ({"wheel": (*WHEEL, "aadml/weights.pt")}, None, "aadml/weights.pt"),
        ({}, "v9.9", "the tag is v9.9"),
    ],
)
def test_a_faulty_release_is_refused(tmp_path, archives, tag, fault):
    write(tmp_path, **archives)
    with pytest.raises(SystemExit, match=re.escape(fault)):
        release_contents.check(tmp_path, tag)


def test_the_workflow_pins_its_actions_and_only_its_last_job_may_publish():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    actions = re.findall(r"uses: (\S+)", text)
    assert len(actions) == 5
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action) for action in actions)
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert {name: job.get("permissions") for name, job in workflow["jobs"].items()} == {
        "build": None, "publish": {"id-token": "write"},
    }  # fmt: skip
    assert "secrets." not in text


@pytest.mark.slow
def test_importing_aadml_takes_less_than_20_ms_more_than_python():
    def least(code):
        times = []
        for _ in range(5):
            script = f"import time; start = time.process_time(); {code}; print(time.process_time() - start)"
            run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
            times.append(float(run.stdout))
        return min(times)

    assert least("import aadml") < 0.02
