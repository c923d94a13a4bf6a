import hashlib
import re
import sys
from collections import Counter

import pytest

from aadml.data.manifests.making import manifest
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError
from tests.data.manifests.test_table import plain, rows_of, written
from tests.data.manifests.trees import put


def test_a_seed_that_draws_nothing_is_refused(media):
    lines = [f"media/{number}.mp4,{('train', 'test')[number % 2]}" for number in range(40)]
    table = written(media, "\n".join(["media,split", *lines]))
    with pytest.raises(InputError, match="--seed 3 has no effect"):
        manifest(table, output=media / "m.csv", seed=3)
    assert not (media / "m.csv").exists()
    drawn = [
        rows_of(manifest(table, output=media / "m.csv", split="random:0.5/0.2/0.3", seed=seed)) for seed in (3, 3, 4)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_missing_media_are_counted_and_left_out_only_if_asked(media):
    table = written(media, "media,label\nmedia/1.mp4,x\nmedia/none.mp4,x\nmedia/2.mp4,y\n")
    with pytest.raises(
        InputError, match=r"media files are missing for 1 of 3 clips \(.*none\.mp4\); pass --skip-missing"
    ):
        manifest(table)
    assert not (media / "table.manifest.csv").exists()
    notes = []
    path = manifest(table, skip_missing=True, on_note=notes.append)
    assert [row.id for row in rows_of(path)] == ["1", "2"]
    assert any("media files are missing for 1 of 3 clips, and these clips were left out" in note for note in notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "random:0.9/0.2/0.2"}, "pass shares of at least 0 with the sum 1"),
        ({"split": "half"}, "write random:TRAIN/VALID/TEST"),
        ({"split_by": "speaker"}, "--split-by speaker: there is no column 'speaker'; choose from note"),
        ({"split_by": "note"}, "are in several splits"),
        ({"media": "none"}, "is not a folder; pass --media"),
        ({"valid": 0.2}, "has no such option"),
    ],
)
def test_splits_and_options_that_cannot_be_are_refused(media, options, message):
    lines = ["media,label,note,split", *(f"media/{n}.mp4,c{n % 4},x,{'test' if n % 2 else 'train'}" for n in range(40))]
    with pytest.raises(InputError, match=re.escape(message)):
        manifest(written(media, "\n".join(lines)), **options)


def test_nothing_of_the_users_is_overwritten(media):
    table = plain(media, "media,label")
    before = table.read_bytes()
    with pytest.raises(InputError, match="exists and is not a manifest"):
        manifest(table, output=table)
    manifest(table)
    with pytest.raises(InputError, match=r"pass --output .* to replace the manifest, or --output with another path"):
        manifest(table)
    manifest(table, output=media / "table.manifest.csv", seed=1)
    (media / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="exists and is not a manifest"):
        manifest(table, output=media / "notes.txt")
    assert table.read_bytes() == before
    with pytest.raises(InputError, match="is the input"):
        manifest(media / "table.manifest.csv", output=media / "table.manifest.csv")


OWN_SETS = """
from pathlib import Path

from aadml.data.manifests.listing import ListedClip, Listing


def by_name(folder, *, no_labels: bool = False):
    files = sorted(folder.glob("*.mp4"))
    return Listing(tuple(ListedClip(f.stem, f, () if no_labels else (f.stem[0],), "train") for f in files))


def two(folder, media):
    return []


def no_listing(folder):
    return []


def entries(folder):
    return Listing([])


def texts(folder):
    return Listing((ListedClip("a", "a.mp4", ("x",), "train"),))


def numbers(folder):
    return Listing((ListedClip("a", Path("a.mp4"), (1,), "train"),))
"""


@pytest.fixture
def own_sets(media, monkeypatch):
    (media / "own_sets.py").write_text(OWN_SETS)
    monkeypatch.syspath_prepend(media)
    yield lambda name: consent_to(f"own_sets:{name}") or f"own_sets:{name}"
    sys.modules.pop("own_sets", None)


def test_an_own_data_set_is_listed(media, own_sets):
    rows = rows_of(manifest(own_sets("by_name"), media / "media", output=media / "m.csv"))
    assert (rows[0].id, rows[0].labels) == ("0", ("0",))
    rows = rows_of(manifest(own_sets("by_name"), media / "media", output=media / "m.csv", no_labels=True))
    assert rows[0].labels == ()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("two", "takes folder, media"),
        ("no_listing", "returned a list"),
        ("entries", "returned a Listing"),
        ("texts", "returned a Listing"),
        ("numbers", "returned a Listing"),
    ],
)
def test_an_own_data_set_that_breaks_its_contract_is_refused_in_one_line(media, own_sets, name, fault):
    contract = (
        r"define a data set as \(folder, \*, options\) -> Listing\(tuple of ListedClip\(id: str, media: Path, lab.*\)\)"
    )
    with pytest.raises(InputError, match=rf"^data set own_sets:{name} {fault}; {contract} \(see docs/extending.md\)$"):
        manifest(own_sets(name), media, output=media / "m.csv")
    assert not (media / "m.csv").exists()


@pytest.mark.parametrize(
    ("files", "labels", "splits"),
    [
        (["a.mp4", "b.wav"], [(), ()], {"train"}),
        (["cat/a.mp4", "dog/b.wav", "loose.mp4"], [("cat",), ("dog",)], {"train"}),
        (["train/a.mp4", "test/b.wav"], [(), ()], {"train", "test"}),
        (
            ["train/cat/a.mp4", "val/cat/c.mp4", "test/dog/b.wav"],
            [("cat",), ("dog",), ("cat",)],
            {"train", "valid", "test"},
        ),
    ],
)
def test_a_folder_is_a_source_with_labels_or_without(tmp_path, files, labels, splits):
    for name in files:
        path = tmp_path / "clips" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    rule = None if len(splits) > 1 else "random:1/0/0"
    path = manifest(tmp_path / "clips", split=rule)
    assert path == tmp_path / "clips.manifest.csv"
    rows = rows_of(path)
    assert Counter(row.labels for row in rows) == Counter(labels)
    assert {row.split for row in rows} == splits
    bare = rows_of(manifest(tmp_path / "clips", split=rule, no_labels=True, output=tmp_path / "bare.csv"))
    assert len(bare) == len(files)
    assert not any(row.labels for row in bare)


def test_an_empty_folder_and_a_lone_name_are_refused(tmp_path):
    with pytest.raises(InputError, match="contains no media"):
        manifest(tmp_path)
    with pytest.raises(InputError, match="is the name of a data set; pass its folder as well"):
        manifest("ave")
    with pytest.raises(InputError, match="does not exist"):
        manifest(tmp_path / "none")


@pytest.mark.parametrize("places", [(), ("vggsound", "a", "b")])
def test_a_source_is_one_or_two_arguments(places):
    with pytest.raises(InputError, match=f"there are {len(places)} arguments; pass a folder or a table, or the name"):
        manifest(*places)


def test_a_folder_may_have_the_name_of_a_data_set_and_hold_another_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "ave", "cat/a.mp4", "dog/b.mp4", manifest__csv="id,media\n")
    assert [row.label for row in rows_of(manifest("ave", split="random:1/0/0"))] == ["cat", "dog"]
    (tmp_path / "ave" / "manifest.csv").write_text("\ufeffid,media,split\n")
    with pytest.raises(
        InputError,
        match=r"contains manifest\.csv, which is already a manifest; run `aadml extract .*/manifest\.csv -o F\.h5`",
    ):
        manifest(tmp_path / "ave")


def test_a_table_of_a_data_set_is_listed_with_the_columns_that_are_named(tmp_path):
    put(tmp_path, "a.mp4", vggsound__csv="a,1,dog,train\n")
    with pytest.raises(InputError, match="is a table of the data set vggsound; run `aadml manifest vggsound"):
        manifest(tmp_path / "vggsound.csv")
    (tmp_path / "Annotations.txt").write_text("")
    with pytest.raises(InputError, match=f"run `aadml manifest ave {re.escape(str(tmp_path))}`, or pass"):
        manifest(tmp_path / "Annotations.txt")
    made = manifest(tmp_path / "vggsound.csv", header="video,start,label,split", media_name="{video}")
    assert rows_of(made)[0].columns["start"] == "1"


def test_a_start_that_is_not_a_number_is_refused(tmp_path):
    folder = put(tmp_path / "data", "v0.mp4", vggsound__csv="v0,soon,dog,train\n")
    with pytest.raises(
        InputError, match="vggsound: the start of v0 is 'soon', which is not a number; correct the cell"
    ):
        manifest("vggsound", folder, output=tmp_path / "all.csv")


def test_the_clips_of_a_data_set_without_a_file_are_left_out_or_listed(tmp_path):
    rows = "".join(f"v{n},{n},{('dog', 'cat')[n % 2]},{('train', 'test')[n // 4]}\n" for n in range(8))
    folder = put(tmp_path / "data", *(f"v{n}.mp4" for n in (0, 5)), vggsound__csv=rows)
    listed = manifest("vggsound", folder, output=tmp_path / "all.csv", on_note=(notes := []).append)
    digest, missing = hashlib.sha256(rows.encode()).hexdigest(), [f"v{n}_00000{n}.mp4" for n in (1, 2, 3, 4, 6, 7)]
    assert notes == [
        "8 clips, 2 classes (4 train, 0 valid, 4 test)",
        f"missing media files: 6 ({', '.join(missing[:5])} and 1 more)",
        "recordings in more than one row: 0",
        *(f"recordings shared by {pair}: 0" for pair in ("train-valid", "train-test", "valid-test")),
        f"sha256 {digest}  vggsound.csv",
        f"the 6 missing videos are listed in {tmp_path / 'all.missing.txt'}",
    ]
    assert (
        tmp_path / "all.missing.txt"
    ).read_text() == "# missing videos, listed by aadml manifest\nv1\nv2\nv3\nv4\nv6\nv7\n"
    assert [row.id for row in rows_of(listed)] == [f"v{n}_00000{n}" for n in range(8)]
    found = manifest("vggsound", folder, output=tmp_path / "found.csv", skip_missing=True, on_note=notes.append)
    assert [row.id for row in rows_of(found)] == ["v0_000000", "v5_000005"]
    files = ", ".join(str(folder / name) for name in missing[:5])
    assert f"media files are missing for 6 of 8 clips, and these clips were left out ({files} and 1 more)" in notes
    for name in ("v0.mp4", "v5.mp4"):
        (folder / name).unlink()
    with pytest.raises(InputError, match="there are no clips to list; pass at least one clip"):
        manifest("vggsound", folder, output=tmp_path / "none.csv", skip_missing=True)


def test_a_list_replaces_only_a_list_and_is_removed_with_the_last_missing_video(tmp_path):
    folder = put(tmp_path / "data", "v0.mp4", vggsound__csv="v0,0,dog,train\nv1,0,dog,train\nv2,0,dog,test\n")
    output, missing = tmp_path / "all.csv", tmp_path / "all.missing.txt"
    missing.write_text("v1 is private\n")
    with pytest.raises(InputError, match=r"all\.missing\.txt exists and is not a list of missing videos"):
        manifest("vggsound", folder, output=output)
    assert not output.exists()
    missing.write_text("v1\nv2\nv1 is private\n")
    with pytest.raises(InputError, match="so the file is not overwritten; remove or rename this file"):
        manifest("vggsound", folder, output=output)
    missing.rename(tmp_path / "mine.txt")
    manifest("vggsound", folder, output=output)
    assert missing.read_text().splitlines()[1:] == ["v1", "v2"]
    put(folder, "v1.mp4")
    manifest("vggsound", folder, output=output)
    assert missing.read_text().splitlines()[1:] == ["v2"]
    put(folder, "v2.mp4")
    manifest("vggsound", folder, output=output)
    assert not missing.exists()
    (tmp_path / "mine.txt").rename(missing)
    manifest("vggsound", folder, output=output)
    assert missing.read_text().splitlines()[2:] == ["v1 is private"]


def test_no_list_is_written_through_a_link(media):
    table = plain(media, "media,label")
    for link, chosen, told in (
        ("table.manifest.csv", {}, "exists; pass --output with another path"),
        ("m.missing.txt", {"output": media / "m.csv"}, "is a symbolic link"),
    ):
        (media / link).symlink_to(media / "mine")
        before = sorted(media.iterdir())
        with pytest.raises(InputError, match=told):
            manifest(table, **chosen)
        assert sorted(media.iterdir()) == before
