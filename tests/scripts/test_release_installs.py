"""Installations of a release: which environments are made, and how failures are reported."""

import pytest

from scripts import release_installs
from scripts.release_installs import EXTRAS, Case, Row, StepError


def test_every_extra_is_installed_at_its_newest_and_at_its_lowest_versions():
    cases = [*release_installs.cases(["/one/python", "/two/python"])]
    for resolution in ("newest", "lowest"):
        named = {case.extras for case in cases if case.python == "/one/python" and case.resolution == resolution}
        assert named >= {(), tuple(EXTRAS), *((extra,) for extra in EXTRAS)}
    assert [case.extras for case in cases if case.python == "/two/python"] == [(), tuple(EXTRAS)]
    assert len({(case.name, case.python) for case in cases}) == len(cases)
    assert [case.name for case in cases if case.headless or case.sessions] == ["README", "headless OpenCV"]


def test_a_failed_step_is_a_row_and_the_environment_is_removed(monkeypatch, tmp_path):
    folders = []

    class Broken:
        def __init__(self, folder, python):
            folders.append(folder)
            raise StepError("uv venv: no interpreter")

    monkeypatch.setattr(release_installs, "Environment", Broken)
    row = release_installs.measure(tmp_path / "wheel", Case("core, newest", "/one/python3.11"))
    assert "| core, newest | python3.11 | failed: uv venv: no interpreter |" in release_installs.line(row)
    assert not folders[0].exists()


def test_a_row_has_the_measurements():
    row = Row(Case("plot, newest", "python"), "3.11.7", 38, 1375.4, 9.6, 44.5, 14.4)
    assert release_installs.line(row) == "| plot, newest | 3.11.7 | 38 | 1,375 | 10 | 44 | 14 |"


def test_a_failed_command_is_reported_with_its_last_lines(tmp_path):
    place = release_installs.Environment.__new__(release_installs.Environment)
    place.work, place.variables = tmp_path, {"PATH": "/usr/bin:/bin"}
    with pytest.raises(StepError, match=r"^sh -c .*: exit status 3: the reason$"):
        place.run("sh", "-c", "echo the reason >&2; exit 3")


def test_lowest_versions_are_checked():
    place = release_installs.Environment.__new__(release_installs.Environment)
    pinned = {requirement.name: floor for requirement, floor in map(release_installs.floor_of, release_installs.CORE)}
    place.pip = lambda command: "".join(f"{name}=={version}\n" for name, version in pinned.items())
    case = Case("core, lowest", "python", (), "lowest")
    release_installs.check_floors(place, case)
    lowest, pinned["numpy"] = pinned["numpy"], "2.9.0"
    with pytest.raises(StepError, match=f"numpy 2.9.0 is not at its lowest version {lowest}"):
        release_installs.check_floors(place, case)
