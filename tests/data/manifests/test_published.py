"""A small copy of each data set, in the published layout, listed by one command."""

import re
from collections import Counter

import pytest

from aadml.data.manifests import MANIFESTS
from aadml.data.manifests.making import manifest
from aadml.data.manifests.published import PublishedTables
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import documentation
from aadml.feature_extraction.manifest import read_manifest
from tests.data.manifests.trees import put

CAPTIONS = 'file_name,caption_1,caption_2,caption_3,caption_4,caption_5\nRain.wav,a,b,"c, d",e,f\n'
KINETICS = "label,youtube_id,time_start,time_end,split,is_cc\ntap dancing,{0}1,10,20,{0},0\nabseiling,{0}2,1,11,{0},0\n"
SETS = {
    "vggsound": (
        {
            "vggsound__csv": '---g-f_I2yQ,1,people marching,test\n--0PQM4-hqg,30,"bird chirping, tweeting",train\n'
            "--56QUhyDQM,185,people marching,train\n"
        },
        ["video/---g-f_I2yQ_000001.mp4", "video/--0PQM4-hqg_000030.mp4", "video/--56QUhyDQM_000185.mp4"],
        {("test", "people marching"): 1, ("train", "people marching"): 1, ("train", "bird chirping, tweeting"): 1},
    ),
    "audioset": (
        {
            "eval_segments__csv": "# Segments csv created\n# num_ytids=2\n# YTID, start_seconds, end_seconds, "
            'positive_labels\n--4gqARaEJE, 0.000, 10.000, "/m/068hy,/m/07q6cd_"\n'
            '--BfvyPmVMo, 20.000, 30.000, "/m/03l9g"\n',
            "balanced_train_segments__csv": '# a\n# b\n# c\n--PJHxphWEs, 30.000, 40.000, "/m/09x0r"\n',
            "class_labels_indices__csv": 'index,mid,display_name\n0,/m/09x0r,"Speech"\n1,/m/03l9g,"Hammer"\n',
        },
        ["eval/Y--4gqARaEJE.wav", "eval/--BfvyPmVMo_20000.wav", "train/--PJHxphWEs.flac"],
        {("test", "/m/068hy", "/m/07q6cd_"): 1, ("test", "Hammer"): 1, ("train", "Speech"): 1},
    ),
    "audiocaps": (
        {
            "train__csv": "audiocap_id,youtube_id,start_time,caption\n91139,r1nicOVtvkQ,130,A woman talks\n",
            "val__csv": "audiocap_id,youtube_id,start_time,caption\n9,vfY_TJq7n_U,130,\"Ducks, water\"\n"
            "8,vfY_TJq7n_U,130,Ducks\n",
            "test__csv": "audiocap_id,youtube_id,start_time,caption\n103549,7fmOlUlwoNg,0,Rattling\n",
        },
        ["wav/Yr1nicOVtvkQ.wav", "wav/vfY_TJq7n_U_130.wav", "wav/103549.wav"],
        {("train",): 1, ("valid",): 1, ("test",): 1},
    ),
    "clotho": (
        {f"clotho_captions_{part}__csv": CAPTIONS for part in ("development", "validation", "evaluation")},
        ["development/Rain.wav", "validation/Rain.wav", "evaluation/Rain.wav"],
        {("train",): 1, ("valid",): 1, ("test",): 1},
    ),
    "kinetics-sounds": (
        {f"{part}__csv": KINETICS.format(part) for part in ("train", "val", "test")},
        [f"{part}/tap dancing/{part}1_000010_000020.mp4" for part in ("train", "val", "test")],
        {(split, "tap dancing"): 1 for split in ("train", "valid", "test")},
    ),
    "music": (
        {
            "MUSIC_solo_videos__json": '{"version": 1, "videos": {"flute": ["a", "b", "c"], "tuba": ["d", "e", "f"]}}',
            "MUSIC_duet_videos__json": '{"version": 1.0, "videos": {"flute tuba": ["g"]}}',
        },
        [*(f"solo/flute/{v}.mp4" for v in "abc"), *(f"solo/tuba/{v}.mp4" for v in "def"), "duet/flute tuba/g.mp4"],
        {("train", "flute"): 2, ("test", "flute"): 1, ("train", "tuba"): 2, ("test", "tuba"): 1,
         ("train", "flute", "tuba"): 1},
    ),
}  # fmt: skip


@pytest.fixture(params=SETS)
def copy(request, tmp_path):
    texts, media, counts = SETS[request.param]
    return request.param, put(tmp_path / "data", *media, **texts), counts


def test_one_command_lists_classes_splits_and_files(copy):
    name, folder, counts = copy
    notes = []
    rows = read_manifest(manifest(name, folder, on_note=notes.append)).rows
    assert Counter((row.split, *row.labels) for row in rows) == counts
    assert "missing media files: 0" in notes
    assert not any({"start", "end"} & set(row.columns) for row in rows)


def test_a_plain_listing_of_the_folder_names_the_data_set(copy):
    name, folder, _ = copy
    with pytest.raises(InputError, match=re.escape(f"run `aadml manifest {name} {folder}`")):
        manifest(folder)
    assert not list(folder.parent.glob("*.manifest.csv"))


def test_captions_of_a_clip_are_joined(tmp_path):
    texts, media, _ = SETS["audiocaps"]
    rows = read_manifest(manifest("audiocaps", put(tmp_path / "data", *media, **texts))).rows
    assert [(row.media["text"], row.media.get("text_2")) for row in rows] == [
        ("A woman talks", None), ("Ducks, water", "Ducks"), ("Rattling", None)
    ]  # fmt: skip
    assert rows[1].columns["video_start"] == "130"
    assert rows[1].columns["video_end"] == "140"


def test_tables_may_be_in_the_folder_dataset(tmp_path):
    texts, media, _ = SETS["audiocaps"]
    put(tmp_path / "AC" / "dataset", **texts)
    rows = read_manifest(manifest("audiocaps", put(tmp_path / "AC", *media))).rows
    assert [(row.split, row.media["audio"]) for row in rows] == [
        (split, str(tmp_path / "AC" / file)) for split, file in zip(("train", "valid", "test"), media, strict=True)
    ]
    put(tmp_path / "AC", test__csv=texts["test__csv"])
    assert len(read_manifest(manifest("audiocaps", tmp_path / "AC", output=tmp_path / "m.csv")).rows) == 1


def test_whole_recordings_are_cut_by_the_manifest(tmp_path):
    texts, _, _ = SETS["vggsound"]
    folder = put(tmp_path / "data", "--0PQM4-hqg.mkv", **texts)
    rows = read_manifest(manifest("vggsound", folder, whole_recordings=True)).rows
    assert rows[1].columns["start"] == "30"
    assert rows[1].columns["end"] == "40"
    assert rows[1].media["visual"] == str(folder / "--0PQM4-hqg.mkv")
    texts, media, _ = SETS["music"]
    with pytest.raises(InputError, match=r"--whole-recordings needs times, but the video '.*' has none; omit"):
        manifest("music", put(tmp_path / "music", *media, **texts), whole_recordings=True)


def test_missing_and_ambiguous_files_are_named(tmp_path):
    texts, _, _ = SETS["vggsound"]
    folder = put(tmp_path / "data", **texts)
    made = manifest("vggsound", folder / "vggsound.csv", output=tmp_path / "m.csv")
    assert made.with_name("m.missing.txt").read_text().splitlines()[1:] == ["---g-f_I2yQ", "--0PQM4-hqg", "--56QUhyDQM"]
    put(folder, "a/---g-f_I2yQ_000001.mp4", "b/---g-f_I2yQ_000001.mp4")
    with pytest.raises(InputError, match="2 files have the name '---g-f_I2yQ_000001'"):
        manifest("vggsound", folder)
    rows = read_manifest(manifest("vggsound", folder, media=folder / "a")).rows
    assert rows[0].media["audio"] == str(folder / "a" / "---g-f_I2yQ_000001.mp4")


@pytest.mark.parametrize("test_folder", ["evaluation", "clotho_audio_evaluation"])
def test_a_clip_never_gets_the_file_of_another_table(tmp_path, test_folder):
    texts, _, _ = SETS["clotho"]
    folder = put(tmp_path / "data", f"{test_folder}/Rain.wav", **texts)
    rows = read_manifest(manifest("clotho", folder, skip_missing=True, output=tmp_path / "m.csv")).rows
    assert [row.split for row in rows] == ["test"]
    assert (tmp_path / "m.missing.txt").read_text().splitlines()[-2:] == ["development/Rain.wav", "validation/Rain.wav"]
    put(tmp_path / "data", "all/Rain.wav")
    rows = read_manifest(manifest("clotho", folder, media=folder / "all", output=tmp_path / "all.csv")).rows
    assert {row.media["audio"] for row in rows} == {str(folder / "all" / "Rain.wav")}


def test_clips_of_unique_names_may_be_in_the_folder_of_any_table(tmp_path):
    names = ("development", "validation", "evaluation")
    tables = {f"clotho_captions_{name}__csv": f"file_name,caption_1\n{name}.wav,rain\n" for name in names}
    folder = put(tmp_path / "data", *(f"clotho_audio_development/{name}.wav" for name in names), **tables)
    assert len(read_manifest(manifest("clotho", folder, skip_missing=True, output=tmp_path / "m.csv")).rows) == 3
    put(folder, "clotho_audio_evaluation/validation.wav")
    with pytest.raises(InputError, match="there are no clips to list"):  # perhaps another table has the name
        manifest("clotho", folder / "clotho_captions_validation.csv", skip_missing=True)


def test_other_tables_are_refused_with_the_page(tmp_path):
    put(tmp_path / "none", "x.mp4")
    with pytest.raises(InputError, match=r"contains none of the tables vggsound\*\.csv; pass the tables of https:"):
        manifest("vggsound", tmp_path / "none")
    put(tmp_path / "other", train__csv="file_name,caption\nx.wav,a\n")
    with pytest.raises(
        InputError, match=r"lacks the column 'youtube_id' \(columns: file_name, caption\); pass a table"
    ):
        manifest("audiocaps", tmp_path / "other")


def test_every_layout_cites_its_page():
    published = {name: entry for name, entry in MANIFESTS.items() if isinstance(entry, PublishedTables)}
    assert set(published) == set(SETS)
    for name, entry in published.items():
        assert entry.page in documentation(MANIFESTS.places[name])
    assert "unverified" in documentation(MANIFESTS.places["vegas"])
    assert "https://github.com/YapengTian/AVE-ECCV18" in documentation(MANIFESTS.places["ave"])


def test_classes_and_clips_with_several_captions_are_counted(tmp_path):
    texts, media, _ = SETS["kinetics-sounds"]
    manifest("kinetics-sounds", put(tmp_path / "data", *media, **texts), on_note=(notes := []).append)
    assert "3 clips of other classes were left out" in notes
    texts, media, _ = SETS["clotho"]
    made = manifest("clotho", put(tmp_path / "clotho", *media, **texts))
    header, first, *_ = made.read_text().splitlines()
    assert header == "id,media,split,video," + ",".join(f"caption_{n}" for n in range(1, 6))
    assert first == 'development/Rain.wav,clotho/development/Rain.wav,train,Rain.wav,a,b,"c, d",e,f'
