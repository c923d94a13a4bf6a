"""The folder of a sweep: its own, on the same data, and gone again where nothing was begun in it."""

import hashlib
import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.folder import refuse_foreign, sole_owner

SWEEPS = {
    "compare": ["compare", "--methods", "random,cca", "--data"],
    "ablate": ["ablate", "--over", "proxy.k=1,2", "--data"],
    "paper": ["reproduce", "paper", "--only", "figure-5", "--ave"],
}


def refused(words, *more):
    done = CliRunner().invoke(cli, [*words, *map(str, more)])
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


def begun(folder):
    (folder / "runs" / "proxy.k--1_seed0").mkdir(parents=True)


def test_a_folder_on_other_data_is_refused(features, tmp_path):
    folder = tmp_path / "sweep"
    with sole_owner(folder, {folder: str(features)}):
        begun(folder)
    with sole_owner(folder, {folder: str(features)}):
        pass
    features.write_bytes(features.read_bytes() + b" ")
    with (
        pytest.raises(InputError, match="the content has changed since"),
        sole_owner(folder, {folder: str(features)}),
    ):
        pass


def test_the_data_of_a_study_are_noted_as_a_file_or_as_the_names_and_sizes_of_a_folder(features, tmp_path):
    with sole_owner(tmp_path / "out" / "ave", {tmp_path / "out" / "ave": str(features)}):
        begun(tmp_path / "out" / "ave")
    sha256 = hashlib.sha256(features.read_bytes()).hexdigest()
    written = (tmp_path / "out" / "ave" / "data.json").read_text()
    assert written == f'{{\n  "data": "{features}",\n  "sha256": "{sha256}"\n}}\n'
    data, folder = tmp_path / "data", tmp_path / "study"
    data.mkdir()
    (data / "a").write_text("1")
    with sole_owner(folder, {folder: str(data)}):
        begun(folder)
    for content, is_same in (("2", True), ("12", False)):
        (data / "a").write_text(content)
        refused = nullcontext() if is_same else pytest.raises(InputError, match="the content has changed since")
        with refused, sole_owner(folder, {folder: str(data)}):
            pass


def test_a_study_over_data_is_extended_and_reordered(tmp_path):
    places = [str(tmp_path / name) for name in "abc"]
    for place in places:
        Path(place).write_text(place)
    folder = tmp_path / "study"
    with sole_owner(folder, {folder: places[:2]}):
        begun(folder)
    for data in (places[1::-1], places, places[:1]):
        with sole_owner(folder, {folder: data}):
            pass
    Path(places[2]).write_text("changed")
    with pytest.raises(InputError, match="/c: the content has changed since"), sole_owner(folder, {folder: places}):
        pass
    joined = "".join(hashlib.sha256(place.encode()).hexdigest() for place in places[:2])
    old = {"data": ", ".join(places[:2]), "sha256": hashlib.sha256(joined.encode()).hexdigest()}
    (folder / "data.json").write_text(json.dumps(old))
    with sole_owner(folder, {folder: places[:2]}):
        pass


def test_runs_with_equal_judgments_but_other_data_are_refused(tmp_path):
    data, other, judged, folder = (str(tmp_path / name) for name in ("a", "b", "judged.csv", "study"))
    for place in (data, other, judged):
        Path(place).write_text(place)
    folder = Path(folder)
    with sole_owner(folder, {folder: data}):  # as in earlier versions, without judgments
        begun(folder)
    for _ in range(2):
        with sole_owner(folder, {folder: data}, [judged]):
            pass
    assert list(json.loads((folder / "data.json").read_text())["data"]) == [data, judged]
    with pytest.raises(InputError, match="runs on other data"), sole_owner(folder, {folder: other}, [judged]):
        pass
    Path(judged).write_text("changed")
    wanted = f"^{judged}: the content has changed since the runs in {folder} were begun; restore the content, or choose"
    with pytest.raises(InputError, match=wanted), sole_owner(folder, {folder: data}, [judged]):
        pass


def test_a_folder_that_cannot_be_created_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file/out cannot be created"), sole_owner(tmp_path / "file" / "out"):
        pass


@pytest.mark.parametrize(("count", "told"), [(3, "0.md, 1.md, 2.md"), (4, "0.md, 1.md, 2.md ...")])
def test_three_of_the_files_of_something_else_are_listed(tmp_path, count, told):
    for n in range(count):
        (tmp_path / f"{n}.md").touch()
    with pytest.raises(InputError, match=re.escape(f"do not belong to a study ({told}); choose")):
        refuse_foreign(tmp_path)
    for note, is_study in (("[1]", False), ('{"data": "a"}', False), ('{"data": "a", "sha256": "b"}', True)):
        (tmp_path / "data.json").write_text(note)
        with nullcontext() if is_study else pytest.raises(InputError, match="do not belong"):
            refuse_foreign(tmp_path)


def test_made_up_data_of_another_name_are_other_data(tmp_path):
    folder = tmp_path / "sweep"
    with sole_owner(folder, {folder: "synthetic:ave"}):
        begun(folder)
    with sole_owner(folder, {folder: "synthetic:ave"}):
        pass
    wanted = r"contains runs on other data \(synthetic:ave.*for synthetic:vegas"
    with pytest.raises(InputError, match=wanted), sole_owner(folder, {folder: "synthetic:vegas"}):
        pass


def test_two_sweeps_never_work_in_one_folder(tmp_path):
    with sole_owner(tmp_path), pytest.raises(InputError, match="another process"), sole_owner(tmp_path):
        pass
    with sole_owner(tmp_path):
        pass


def test_a_second_process_leaves_the_note_on_the_data_of_the_first(features, tmp_path):
    folder = tmp_path / "sweep"
    with sole_owner(folder, {folder: str(features)}):
        with pytest.raises(InputError, match="another process"), sole_owner(folder, {folder: str(features)}):
            pass
        assert (folder / "data.json").is_file()


def test_a_folder_that_was_there_or_holds_something_stays(tmp_path):
    (tmp_path / "own").mkdir()
    with sole_owner(tmp_path / "own"):
        pass
    with sole_owner(tmp_path / "new" / "runs"):
        (tmp_path / "new" / "kept").write_text("")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["kept", "new", "own"]


def test_a_folder_without_runs_is_free_for_other_data(features, tmp_path):
    other = features.with_name("other.h5")
    other.write_bytes(b"other")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "data.json").write_text('{"data": "gone.h5", "sha256": "0"}')  # of a call that was killed
    with sole_owner(folder, {folder: str(other)}):
        begun(folder)
    wanted = r"contains runs on other data \(.*other\.h5, which may have changed since"
    with pytest.raises(InputError, match=wanted), sole_owner(folder, {folder: str(features)}):
        pass


@pytest.mark.parametrize("more", [["--merge"], ["--set", "device=cuda:99"]], ids=["merge", "device"])
@pytest.mark.parametrize("words", SWEEPS.values(), ids=SWEEPS)
def test_a_sweep_that_is_refused_leaves_no_folder(features, tmp_path, words, more):
    before = sorted(tmp_path.iterdir())
    refused(words, features, *more, "-o", tmp_path / "new" / "out")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_a_refused_merge_of_the_sample_leaves_no_folder(tmp_path):
    told = refused(["reproduce", "mei", "--merge", "--seeds", "1", "-o"], tmp_path / "out")
    assert "not finished" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", SWEEPS.values(), ids=SWEEPS)
def test_a_refused_merge_leaves_what_was_begun(features, tmp_path, words):
    place = tmp_path / "out" / ("ave" if words[0] == "reproduce" else "")
    with sole_owner(tmp_path / "out", {place: str(features)}):
        begun(place)
    known = (place / "data.json").read_bytes()
    refused(words, features, "--merge", "-o", tmp_path / "out")
    assert (place / "data.json").read_bytes() == known


@pytest.mark.parametrize(
    ("names", "told"),
    [(["results.csv"], "results.csv"),
     (["data.json"], "data.json"),
     (["results.csv", "runs/20260101/config.yaml"], "results.csv")],
    ids=["table", "data", "project"],
)  # fmt: skip
@pytest.mark.parametrize("words", SWEEPS.values(), ids=SWEEPS)
def test_a_folder_of_something_else_is_refused_before_anything_is_written(features, tmp_path, words, names, told):
    own = tmp_path / "thesis"
    for name in names:
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text("mine")
    assert (
        refused(words, features, "-o", own)
        == f"{own} contains files that do not belong to a study ({told}); choose another --output"
    )
    assert {str(one.relative_to(own)) for one in own.rglob("*") if one.is_file()} == set(names)
    assert all((own / name).read_text() == "mine" for name in names)


def test_what_somebody_else_noted_is_neither_replaced_nor_removed(features, tmp_path):
    own = tmp_path / "out" / "ave" / "data.json"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    assert f"{own} is not a valid record of the data of the runs" in refused(
        SWEEPS["paper"], features, "-o", tmp_path / "out"
    )
    assert own.read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["report.html", "runs", "runs/cca_seed0", "runs/cca_seed0/failure.txt", "shard-0-of-2"]
)
def test_a_study_with_a_link_is_refused(features, tmp_path, name):
    folder, victim = tmp_path / "sweep", tmp_path / "mine"
    link = folder / name
    link.parent.mkdir(parents=True)
    victim.mkdir()
    link.symlink_to(victim)
    shard = folder / "shard-0-of-2"
    for locked in (folder, shard):
        refused = pytest.raises(InputError, match=f"{name} is a symbolic link")
        with refused, sole_owner(locked, {folder: str(features)}):
            raise AssertionError("opened")
    assert not [*victim.iterdir()]
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    link.unlink()
    (tmp_path / "link").symlink_to(folder)
    with sole_owner(tmp_path / "link", {tmp_path / "link": str(features)}):
        pass
