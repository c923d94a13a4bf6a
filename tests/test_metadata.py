"""What stands about the project in files beside the code agrees with the code."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
LOCK = [
    Requirement(line)
    for line in (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def wanted():
    named = [*PROJECT["optional-dependencies"].values(), *GROUPS.values()]
    lines = [*PROJECT["dependencies"], *(line for lines in named for line in lines)]
    return [requirement for requirement in map(Requirement, lines) if requirement.name != PROJECT["name"]]


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_the_lock_holds_every_dependency_in_a_version_that_fits(requirement):
    pins = [pin for pin in LOCK if canonicalize_name(pin.name) == canonicalize_name(requirement.name)]
    assert pins, "run scripts/lock"
    for pin in pins:
        (version,) = pin.specifier
        assert version.operator == "=="
        assert requirement.specifier.contains(version.version, prereleases=True), "run scripts/lock"


def test_setup_knows_every_extra_and_dependency_group():
    setup = (ROOT / "scripts" / "setup").read_text(encoding="utf-8")
    assert "--group dev" in setup
    assert re.findall(r"\n    ([a-z |]+)\) groups\+=\" --group \$name\"", setup) == [
        " | ".join(sorted(GROUPS.keys() - {"dev"}))
    ]
    (with_dev,) = re.findall(r'dev\) extras\+="([a-z,]+)"', setup)
    assert set(with_dev.strip(",").split(",")) == PROJECT["optional-dependencies"].keys() - {"ray"}


def test_the_core_needs_few_packages():
    """A tool of the ecosystem (a hub, a tracker, a table format) is an extra, or is installed by its users."""
    assert {Requirement(line).name for line in PROJECT["dependencies"]} == {
        "torch", "numpy", "scipy", "scikit-learn", "h5py", "click", "opencv-python", "av", "pyyaml", "safetensors",
        "tqdm", "annotated-types", "pydantic", "jinja2", "xxhash",
    }  # fmt: skip


def test_the_lock_says_nothing_of_the_machine_it_was_made_on():
    text = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    assert not [word for word in ("://", "--", " @ ", "+cpu", "/tmp", "/home") if word in text]


def test_the_constraints_hold_in_the_lock():
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert line in {str(pin) for pin in LOCK}


def test_the_citation_agrees_with_the_metadata():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["url"] == PROJECT["urls"]["Homepage"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert citation["references"][0]["title"] in (ROOT / "README.md").read_text(encoding="utf-8").replace("\n", " ")


def test_the_hosted_checks_run_every_supported_python():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    pythons = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    assert {"3.11", "3.12", "3.13"} <= set(pythons)


def test_every_hook_runs_what_is_installed_here():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"]
    for hook in hooks[0]["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith("scripts/tool ")
