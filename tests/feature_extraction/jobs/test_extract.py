import dataclasses
from fractions import Fraction

import av
import numpy as np
import pytest

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs import extract as extracting
from aadml.feature_extraction.manifest import read_manifest
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Limits, Sound
from tests.feature_extraction.small_jobs import AUDIO, BAD, VISUAL, failures, run


@pytest.fixture(scope="module")
def whole(collection, tmp_path_factory):
    output = tmp_path_factory.mktemp("whole") / "f.h5"
    return output, run(collection, output)


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
    assert "1 of 10 clips have no audio; these clips are masked, not left out" in content.notes()


@pytest.mark.slow
def test_an_empty_cell_is_a_clip_without_that_modality_and_two_are_none_at_all(small):
    lines = ["id,audio,visual,split", "a,clip 0.mp4,,train", "b,,clip 1.mp4,test", "c,,,test", "d,gone.mp4,,test"]
    (small / "manifest.csv").write_text("\n".join(lines))
    outcome = run(small, small / "f.h5")
    content = read_features(small / "f.h5")
    assert (content.ids, content.has("audio").tolist()) == (("a", "b"), [True, False])
    assert content.has("visual").tolist() == [False, True]
    assert [(one.id, one.reason, one.detail) for one in outcome.lacking] == [
        ("a", "no-video", "the manifest lists no file"),
        ("b", "no-audio", "the manifest lists no file"),
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
    with pytest.raises(InputError, match="merging does not support this fit"):
        run(small, small / "g.h5", (made,), shard=(0, 2))


def test_decoders_give_way_to_a_network_alone(small, monkeypatch):
    asked = []
    real = extracting.DecodingSettings
    monkeypatch.setattr(extracting, "DecodingSettings", lambda *a, **k: asked.append(k["gives_way"]) or real(*a, **k))
    run(small, small / "network.h5", (network(2)[0],))
    run(small, small / "plain.h5", (AUDIO,))
    assert asked == [True, False]


def test_a_description_that_is_not_a_number_is_a_failure(small):
    made, _ = network(2)
    broken = dataclasses.replace(made, describe=lambda clips: [np.full((1, 2), np.nan, np.float32) for _ in clips])
    outcome = run(small, small / "f.h5", (broken,))
    assert {failure.reason for failure in outcome.failures} == {"corrupt", "not-a-media-file"}
    assert outcome.path is None
    assert not (small / "f.h5").exists()


def test_counts_progress_to_the_end(small):
    seen = []
    run(small, small / "f.h5", progress=lambda done, failed: seen.append((done, failed)))
    assert [done for done, _ in seen] == [1, 2, 3, 4]
    assert seen[-1] == (4, 1)


def test_refuses_jobs_that_make_no_sense(small):
    (small / "notes.txt").write_text("mine")
    (small / "g.h5.failures.csv").mkdir()
    (small / "h.h5.failures.csv").write_text("mine")
    for output, options, message in [
        ("notes.txt", {}, "exists and is not a feature file"),
        ("", {}, "is a folder"),
        ("f.h5", {"shard": (2, 2)}, r"shard is \(2, 2\); pass \(i, n\) with i from 0 to n-1"),
        ("f.h5", {"time_limit": 0.0}, "time limit is 0 s"),
        ("f.h5", {"time_limit": float("nan")}, "time limit is nan s"),
        ("f.h5", {"time_limit": float("inf")}, "time limit is inf s"),
        ("f.h5", {"workers": 0}, "the number of workers is 0; pass a number above zero"),
        ("notes.txt/f.h5", {}, "cannot be written"),
        ("g.h5", {}, r"g\.h5\.failures\.csv is a folder"),
        ("h.h5", {}, r"h\.h5\.failures\.csv exists and is not a list of failures"),
    ]:
        with pytest.raises(InputError, match=message):
            run(small, small / output, **options)
    assert (small / "notes.txt").read_text() == "mine"
