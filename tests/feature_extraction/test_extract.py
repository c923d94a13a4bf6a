import csv
import dataclasses
import os
import shutil
from fractions import Fraction

import av
import numpy as np
import pytest

from feature_extraction.backbones import Extractor, extractor
from feature_extraction.extract import extract
from feature_extraction.feature_file import read_features
from feature_extraction.ground.errors import InputError
from feature_extraction.manifest import read_manifest
from feature_extraction.media import Limits, Sound, decode

AUDIO, VISUAL = extractor("log-mel", "audio"), extractor("hog-color", "visual")
BAD = {
    "no file": ("none.mp4", "missing"),
    "text": ("text.mp4", "corrupt"),
    "list": ("list.m3u8", "refused"),
}
LACKING = {"mute": ("mute.mp4", "no-audio"), "blind": ("blind.m4a", "no-video")}


@pytest.fixture(scope="module")
def collection(tmp_path_factory, render):
    """A manifest of good and bad clips, some under odd names."""
    folder = tmp_path_factory.mktemp("collection")
    good = {f"good {number}": f"clip {number}.mp4" for number in range(5)}
    good |= {"-dash": "-dash.mp4", "new\nline": "new\nline.mp4", "ünï": os.fsdecode(b"\xff\xfe.mp4")}
    for number, name in enumerate(good.values()):
        render(folder / name, seconds=1.0 + 0.2 * number, tone=300.0 + 100 * number)
    (folder / "text.mp4").write_text("no media at all")
    (folder / "list.m3u8").write_text("#EXTM3U\n#EXTINF:1,\nclip 0.mp4\n")
    render(folder / "mute.mp4", tone=None)
    render(folder / "blind.m4a", picture=False)
    rows = [*good.items(), *((name, file) for name, (file, _) in (BAD | LACKING).items())]
    rows = rows[::2] + rows[1::2]
    write_manifest(folder / "manifest.csv", rows)
    return folder


def write_manifest(path, rows):
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        table = csv.writer(file)
        table.writerow(["id", "media", "label", "split", "caption_1"])
        for number, (name, media) in enumerate(rows):
            table.writerow([name, media, number % 3, ["train", "val", "test"][number % 3], f"about {name}"])


def run(folder, output, extractors=(AUDIO, VISUAL), **options):
    options = {"workers": 1, **options}
    return extract(read_manifest(folder / "manifest.csv"), output, extractors, **options)


@pytest.fixture(scope="module")
def whole(collection, tmp_path_factory):
    output = tmp_path_factory.mktemp("whole") / "f.h5"
    return output, run(collection, output)


def failures(output):
    with output.with_name(output.name + ".failures.csv").open(encoding="utf-8", errors="surrogateescape") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


@pytest.mark.slow
def test_every_clip_is_either_described_or_listed_with_one_reason(collection, whole):
    output, outcome = whole
    content, listed = read_features(output), failures(output)
    rows = read_manifest(collection / "manifest.csv").rows
    assert [*content.ids] == [row.id for row in rows if row.id not in BAD]
    assert {name: row["reason"] for name, row in listed.items()} == {name: why for name, (_, why) in BAD.items()}
    assert outcome.clips == len(rows)
    assert [failure.id for failure in outcome.failures] == [row.id for row in rows if row.id in BAD]


def test_a_silent_video_and_a_sound_without_picture_are_kept_masked_and_named(whole):
    output, outcome = whole
    content = read_features(output)
    for modality, lacking in [("audio", "mute"), ("visual", "blind")]:
        there = np.array([name != lacking for name in content.ids])
        np.testing.assert_array_equal(content.present[modality], there)
        assert not content.features[modality][~there].any()
        assert content.features[modality][there].any(axis=1).all()
    assert {(one.id, one.modality): one.reason for one in outcome.lacking} == {
        ("mute", "audio"): "no-audio",
        ("blind", "visual"): "no-video",
    }
    assert "1 of 10 clips have no audio: masked, not left out" in content.notes()


def test_incomplete_clips_fail_where_they_are_to_be_dropped_and_nothing_is_done_again(collection, whole, monkeypatch):
    output, _ = whole
    kept = read_features(output)
    shutil.copytree(output.parent, output.parent.with_name("strict"))
    strict = output.parent.with_name("strict") / "f.h5"
    seen = decoded(monkeypatch)
    ended = []
    outcome = run(collection, strict, incomplete="drop", progress=lambda done, failed: ended.append((done, failed)))
    content = read_features(strict)
    assert ([task for task in seen if task[0] < 0], outcome.lacking, ended[-1]) == ([], (), (13, 5))
    assert {one.id: one.reason for one in outcome.failures} == {name: why for name, (_, why) in (BAD | LACKING).items()}
    assert {name: row["reason"] for name, row in failures(strict).items()} == {
        name: why for name, (_, why) in (BAD | LACKING).items()
    }
    rows = np.array([number for number, name in enumerate(kept.ids) if name not in LACKING])
    assert content.ids == tuple(kept.ids[row] for row in rows)
    assert content.present == {}
    for modality, values in kept.features.items():
        np.testing.assert_array_equal(content.features[modality], values[rows])


@pytest.mark.slow
def test_complete_clips_give_the_same_bytes_either_way(small):
    for incomplete in ("keep", "drop"):
        run(small, small / f"{incomplete}.h5", incomplete=incomplete)
    assert (small / "keep.h5").read_bytes() == (small / "drop.h5").read_bytes()


@pytest.mark.slow
def test_an_empty_cell_is_a_clip_without_that_modality_and_two_are_none_at_all(small):
    lines = ["id,audio,visual,split", "a,clip 0.mp4,,train", "b,,clip 1.mp4,test", "c,,,test", "d,gone.mp4,,test"]
    (small / "manifest.csv").write_text("\n".join(lines))
    outcome = run(small, small / "f.h5")
    content = read_features(small / "f.h5")
    assert (content.ids, content.has("audio").tolist()) == (("a", "b"), [True, False])
    assert content.has("visual").tolist() == [False, True]
    assert [(one.id, one.reason, one.detail) for one in outcome.lacking] == [
        ("a", "no-video", "the manifest names none"),
        ("b", "no-audio", "the manifest names none"),
    ]
    assert {one.id: one.reason for one in outcome.failures} == {"c": "missing", "d": "missing"}
    assert run(small, small / "f.h5").lacking == outcome.lacking


def test_rows_are_those_of_their_clips(collection, whole):
    content = read_features(whole[0])
    by_id = {row.id: row for row in read_manifest(collection / "manifest.csv").rows}
    for number, name in enumerate(content.ids):
        row = by_id[name]
        for one in (AUDIO, VISUAL):
            if not content.has(one.modality)[number]:
                continue
            clip = decode(row.media[one.modality], one.inputs, Limits(), 0.0).values
            np.testing.assert_allclose(content.features[one.modality][number], one.pool(one.prepare(clip)), atol=1e-4)
        assert content.class_names[content.labels[number]] == row.label
        assert content.splits[number] == row.split
        assert content.columns["caption_1"][number] == f"about {name}"


def test_the_file_says_what_made_it(whole):
    provenance = read_features(whole[0]).provenance
    assert provenance["audio"]["extractor"] == "log-mel"
    assert provenance["visual"]["parameters"]["weights"] is None
    assert {"av", "opencv", "numpy"} <= set(provenance["audio"]["decoder"])
    assert provenance["audio"]["limits"]["seconds"] == 3600


@pytest.mark.slow
def test_any_number_of_processes_gives_the_same_bytes(collection, whole, tmp_path):
    run(collection, tmp_path / "f.h5", workers=3)
    assert (tmp_path / "f.h5").read_bytes() == whole[0].read_bytes()
    assert (tmp_path / "f.h5.failures.csv").read_bytes() == (whole[0].parent / "f.h5.failures.csv").read_bytes()


@pytest.fixture
def small(collection, tmp_path):
    """Three good clips and a bad one, to be changed."""
    names = ["clip 0.mp4", "clip 1.mp4", "clip 2.mp4", "text.mp4"]
    for name in names:
        shutil.copy(collection / name, tmp_path / name)
    write_manifest(tmp_path / "manifest.csv", [(name, name) for name in names])
    return tmp_path


def decoded(monkeypatch):
    """Count the clips that are sent to be decoded."""
    import feature_extraction.engines.this_machine as module

    seen = []
    original = module.decode_all

    def counting(tasks, wanted, **options):
        def counted():
            for task in tasks:
                seen.append((task.number, *sorted(task.media)))
                yield task

        return original(counted(), wanted, **options)

    monkeypatch.setattr(module, "decode_all", counting)
    return seen


@pytest.mark.slow
def test_the_same_command_again_does_nothing_twice(small, monkeypatch):
    run(small, small / "f.h5")
    before = (small / "f.h5").read_bytes()
    seen = decoded(monkeypatch)
    assert run(small, small / "f.h5").reused == 4
    assert seen == []
    assert (small / "f.h5").read_bytes() == before


@pytest.mark.slow
def test_touching_or_moving_files_is_no_change(small, monkeypatch):
    run(small, small / "f.h5")
    os.utime(small / "clip 1.mp4")
    seen = decoded(monkeypatch)
    run(small, small / "f.h5")
    assert seen == []


@pytest.mark.slow
def test_a_changed_file_is_described_again_alone(small, collection, monkeypatch):
    run(small, small / "f.h5")
    before = read_features(small / "f.h5")
    status = (small / "clip 1.mp4").stat()
    shutil.copy(collection / "-dash.mp4", small / "clip 1.mp4")
    os.utime(small / "clip 1.mp4", ns=(status.st_atime_ns, status.st_mtime_ns))  # a copy that pretends to be old
    seen = decoded(monkeypatch)
    run(small, small / "f.h5")
    after = read_features(small / "f.h5")
    assert seen == [(1, "audio", "visual")]
    changed = [not np.array_equal(before.features["audio"][row], after.features["audio"][row]) for row in range(3)]
    assert changed == [False, True, False]


@pytest.mark.slow
def test_changed_settings_touch_only_their_modality(small, monkeypatch):
    run(small, small / "f.h5")
    seen = decoded(monkeypatch)
    run(small, small / "f.h5", (AUDIO, extractor("hog-color", "visual", {"frames_per_second": 2.0})))
    assert seen == [(number, "visual") for number in range(4)]


@pytest.mark.slow
def test_failures_are_tried_again_only_when_asked_for(small, collection, monkeypatch):
    run(small, small / "f.h5")
    seen = decoded(monkeypatch)
    run(small, small / "f.h5", retry_failed=True)
    assert seen == [(3, "audio", "visual")]


def test_a_file_that_appears_is_taken_up(small, collection, monkeypatch):
    (small / "clip 2.mp4").rename(small / "away")
    assert [failure.reason for failure in run(small, small / "f.h5").failures] == ["missing", "corrupt"]
    (small / "away").rename(small / "clip 2.mp4")
    shutil.copy(collection / "clip 3.mp4", small / "text.mp4")
    seen = decoded(monkeypatch)
    assert run(small, small / "f.h5").failures == ()
    assert [number for number, *_ in seen] == [2, 3]
    assert not (small / "f.h5.failures.csv").exists()


def test_one_modality_alone_is_enough(collection, tmp_path):
    outcome = run(collection, tmp_path / "f.h5", (AUDIO,))
    assert {failure.id for failure in outcome.failures} == {"no file", "text", "mute", "list"}
    assert list(read_features(tmp_path / "f.h5").features) == ["audio"]


def test_descriptions_over_time_are_kept_with_their_offsets(small):
    run(small, small / "f.h5", sequence=True)
    content = read_features(small / "f.h5")
    for one in (AUDIO, VISUAL):
        timeline = content.sequences[one.modality]
        for number, name in enumerate(content.ids):
            description = one.prepare(decode(str(small / name), one.inputs, Limits(), 0.0).values)
            kept = timeline.values[timeline.offsets[number] : timeline.offsets[number + 1]]
            np.testing.assert_allclose(kept, description, atol=1e-4)
        assert timeline.times.shape == (len(timeline.values),)


def test_rows_of_sound_and_picture_are_joined_by_time(tmp_path, render):
    """Sound that begins 1.5 s after the picture: its rows are found beside those of the picture of the same second."""
    manifest = tmp_path / "manifest.csv"
    manifest.write_text("id,audio,visual,label,split\na,late.mkv,late.mkv,x,train\nb,b.mp4,b.mp4,x,test\n")
    late_sound(tmp_path / "late.mkv")
    render(tmp_path / "b.mp4", seconds=3.0)
    made, _ = network(2)
    every_quarter = dataclasses.replace(made, begins=lambda rows, seconds: np.arange(rows) * (seconds / 4))
    run(tmp_path, tmp_path / "f.h5", (every_quarter, VISUAL), sequence=True)
    content = read_features(tmp_path / "f.h5")
    sound, picture = content.sequences["audio"], content.sequences["visual"]
    np.testing.assert_allclose(picture.times, [0, 1, 2, 3, 0, 1, 2], atol=0.03)
    np.testing.assert_allclose(sound.times[:4], 1.5 + np.arange(4) * 0.5, atol=0.05)
    moments = np.arange(4) + 0.6
    assert picture.rows_at(0, moments).tolist() == [0, 1, 2, 3]
    assert sound.rows_at(0, moments).tolist() == [-1, 0, 2, 3]
    assert picture.rows_at(1, moments[:3]).tolist() == [4, 5, 6]


def late_sound(path):
    with av.open(str(path), "w") as file:
        video, audio = file.add_stream("mpeg4", rate=10), file.add_stream("pcm_s16le", rate=8000, layout="mono")
        video.width, video.height, video.pix_fmt = 32, 32, "yuv420p"
        for number in range(40):
            frame = av.VideoFrame.from_ndarray(np.full((32, 32, 3), 5 * number, np.uint8), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 10)
            file.mux(video.encode(frame))
        tone = np.full((1, 16_000), 9000, np.int16)
        frame = av.AudioFrame.from_ndarray(tone, format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 8000, 12_000, Fraction(1, 8000)
        for stream in (video, audio):
            file.mux(stream.encode(frame if stream is audio else None))
        file.mux(audio.encode(None))


def network(batch_clips, fit=None):
    """An extractor whose `describe` runs here: the RMS of each quarter second, and how many clips came together."""
    groups = []

    def describe(prepared):
        groups.append(len(prepared))
        return [
            np.asarray([[np.sqrt(np.mean(q**2)), len(q)] for q in np.array_split(each, 4)], np.float32)
            for each in prepared
        ]

    made = Extractor(
        "rms",
        "audio",
        2,
        Sound(8000),
        {"weights": "untrained"},
        np.abs,
        describe=describe,
        batch_clips=batch_clips,
        fit=fit,
    )
    return made, groups


@pytest.mark.slow
def test_a_network_sees_groups_of_clips_and_rows_stay_aligned(collection, tmp_path):
    made, groups = network(3)
    run(collection, tmp_path / "f.h5", (made,), workers=2)
    content = read_features(tmp_path / "f.h5")
    assert groups == [3, 3, 3]  # nine clips have sound
    by_id = {row.id: row for row in read_manifest(collection / "manifest.csv").rows}
    for number, name in enumerate(content.ids):
        clip = decode(by_id[name].media["audio"], made.inputs, Limits(), 0.0).values
        np.testing.assert_allclose(content.features["audio"][number], made.pool(made.describe([clip])[0]), atol=1e-6)


class Centering:
    """A fit that no table knows."""

    def arrays(self, train):
        return {"mean": np.concatenate(list(train)).mean(axis=0)}

    def transformation(self, arrays):
        return lambda description: description - arrays["mean"]


@pytest.mark.slow
def test_what_is_fitted_sees_the_training_clips_and_changes_all(small):
    made, _ = network(2, Centering())
    plain, _ = network(2)
    run(small, small / "f.h5", (made,), sequence=True)
    run(small, small / "plain.h5", (plain,), sequence=True)
    content, before = read_features(small / "f.h5"), read_features(small / "plain.h5")
    assert content.splits == ("train", "valid", "test")
    mean = before.sequences["audio"].values[:4].mean(axis=0)
    np.testing.assert_allclose(content.fitted["audio"]["mean"], mean)
    np.testing.assert_allclose(content.sequences["audio"].values, before.sequences["audio"].values - mean, atol=1e-6)
    np.testing.assert_allclose(content.features["audio"], before.features["audio"] - mean, rtol=1e-5, atol=1e-4)


def test_what_merging_cannot_fit_is_not_left_to_it(small):
    made, _ = network(2, Centering())
    with pytest.raises(InputError, match="is fitted on all training clips"):
        run(small, small / "g.h5", (made,), shard=(0, 2))


@pytest.mark.slow
def test_damaged_values_are_described_again(small, monkeypatch):
    run(small, small / "f.h5", sequence=True)
    before = (small / "f.h5").read_bytes()
    values = small / "f.h5.work" / "values.f32"
    whole = values.read_bytes()
    for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[: len(whole) // 2], b""):
        values.write_bytes(damaged)
        with monkeypatch.context() as patch:
            seen = decoded(patch)
            outcome = run(small, small / "f.h5", sequence=True)
        assert (outcome.clips, len(outcome.failures)) == (4, 1)
        assert 1 <= len(seen) <= 3
        assert (small / "f.h5").read_bytes() == before


def test_a_description_that_is_not_a_number_is_a_failure(small):
    made, _ = network(2)
    broken = dataclasses.replace(made, describe=lambda clips: [np.full((1, 2), np.nan, np.float32) for _ in clips])
    outcome = run(small, small / "f.h5", (broken,))
    assert {failure.reason for failure in outcome.failures} == {"corrupt"}
    assert outcome.path is None
    assert not (small / "f.h5").exists()


def test_counts_progress_to_the_end(small):
    seen = []
    run(small, small / "f.h5", progress=lambda done, failed: seen.append((done, failed)))
    assert [done for done, _ in seen] == [1, 2, 3, 4]
    assert seen[-1] == (4, 1)


def test_refuses_jobs_that_make_no_sense(small):
    (small / "notes.txt").write_text("mine")
    for output, options, message in [
        ("notes.txt", {}, "exists and is not a feature file"),
        ("", {}, "is a folder"),
        ("f.h5", {"shard": (2, 2)}, "0/2 to 1/2"),
        ("f.h5", {"time_limit": 0.0}, "must be above zero"),
        ("f.h5", {"workers": 0}, "must be above zero"),
        ("f.h5", {"extractors": (AUDIO, AUDIO)}, "one extractor a modality"),
        ("f.h5", {"extractors": ()}, "one extractor a modality"),
        ("notes.txt/f.h5", {}, "cannot be written"),
    ]:
        with pytest.raises(InputError, match=message):
            run(small, small / output, **options)
    assert (small / "notes.txt").read_text() == "mine"
