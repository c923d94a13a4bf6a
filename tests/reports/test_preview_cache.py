"""The cache of previews: kept by content, built again if damaged."""

import os
import socket
import tempfile
from contextlib import nullcontext

import av
import pytest

from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.ground.worker_pool import Lost
from aadml.feature_extraction.ground.worker_process import Conditions
from aadml.reports import previews
from aadml.reports.previews import Preview, PreviewSource, make_previews, preview_of


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder", "absent"])
def test_what_is_no_file_is_never_opened(tmp_path, kind, monkeypatch):
    path = tmp_path / "media.mp4"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        server = socket.socket(socket.AF_UNIX)
        monkeypatch.chdir(tmp_path)  # the address of a socket is short
        server.bind("media.mp4")
        server.close()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    (found,) = make_previews([PreviewSource(str(path), str(path))], cache=tmp_path / "cache", on_note=pytest.fail)
    assert found == Preview(reason="missing")
    reason = "missing" if kind in ("folder", "absent") else "special-file"
    assert preview_of(PreviewSource(str(path), str(path))) == Preview(reason=reason)


def test_a_preview_is_kept_under_the_content_of_its_files_and_the_rules_in_any_order(tmp_path, monkeypatch):
    for name in ("one", "same", "other"):
        (tmp_path / name).write_text(name.replace("same", "one"))

    def key(visual, audio="", **rules):
        monkeypatch.setattr(previews, "_rules", lambda: [rules])
        paths = (str(tmp_path / name) if name else "" for name in (visual, audio))
        return previews.key_of(PreviewSource(*paths))

    own = key("one", rate=1, side=2)
    assert own == key("same", rate=1, side=2) == key("one", side=2, rate=1)
    others = [key("other", rate=1, side=2), key("", "one", rate=1, side=2), key("one", "one", rate=1, side=2),
              key("one", rate=1, side=3)]  # fmt: skip
    assert len({own, *others}) == 5
    segments = [previews.key_of(PreviewSource(str(tmp_path / "one"), "", Segment(0.0, end))) for end in (1.0, 2.0)]
    assert len({previews.key_of(PreviewSource(str(tmp_path / "one"), "")), *segments}) == 3
    assert key("", "absent") == ""
    monkeypatch.setattr(previews, "content_of", lambda path, _: "" if path.endswith("other") else "sum")
    assert key("one", "other") == "", "an unknown content equals no other"
    assert key("one", "absent")


@pytest.mark.slow
def test_previews_are_kept_by_content_and_made_again_where_damaged(tmp_path, spoken, monkeypatch):
    cache, other = tmp_path / "cache", tmp_path / "other.m4a"
    other.write_bytes(spoken.read_bytes())
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"not a clip")
    sources = [
        PreviewSource("", str(spoken)),
        PreviewSource("", str(other)),
        PreviewSource(str(broken), ""),
        PreviewSource("", ""),
    ]
    made = make_previews(sources, cache=cache)
    assert made[0] == made[1] == preview_of(sources[0])
    assert [one.reason for one in made] == ["", "", "not-a-media-file", "missing"]
    assert len(list(cache.iterdir())) == 2
    monkeypatch.setattr(previews, "_built", lambda missing: pytest.fail(f"built again: {missing}") if missing else [])
    assert make_previews(sources, cache=cache) == made
    monkeypatch.undo()
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:-20])
    assert make_previews(sources, cache=cache) == made
    assert make_previews(sources, cache=cache) == made


def test_previews_are_built_once_unless_the_process_failed(tmp_path, monkeypatch):
    built, reasons = [], iter(("", "crashed", "timeout", "corrupt"))

    def build(sources):
        for key, source in sources.items():
            built.append(source.visual)
            yield key, Preview("video/mp4", source.visual, "", next(reasons, ""))

    monkeypatch.setattr(previews, "_built", build)
    for name in "abcd":
        (tmp_path / name).write_text(name)
    sources = [PreviewSource(str(tmp_path / name), "") for name in ("a", "a", "none", "b", "c", "d")]
    found = make_previews(sources, cache=tmp_path / "cache", on_note=pytest.fail)
    assert [preview.reason for preview in found] == ["", "", "missing", "crashed", "timeout", "corrupt"]
    assert [preview.media for preview in found] == [s.visual if "none" not in s.visual else "" for s in sources]
    again = make_previews(sources, cache=tmp_path / "cache", on_note=pytest.fail)
    assert [path[-1] for path in built] == [*"abcd", *"bc"]
    assert (again[0], again[5], len([*(tmp_path / "cache").iterdir()])) == (found[0], found[5], 4)
    next((tmp_path / "cache").glob("*.json")).write_text("damaged")
    make_previews(sources, cache=tmp_path / "cache", on_note=pytest.fail)
    assert len(built) == 7


def test_workers_have_a_minute_of_the_processor_for_each_clip(monkeypatch):
    started = []
    monkeypatch.setattr(previews, "worker_pool", lambda *given: started.append(given) or nullcontext(Pool()))
    monkeypatch.setattr(previews, "processors", lambda: 3)
    for count, workers in ((0, 1), (2, 2), (5, 3)):
        sources = {f"key {n}": PreviewSource(str(n), "") for n in range(count)}
        expected = {key: Preview(reason=("timeout", "crashed")[n % 2]) for n, key in enumerate(sources)}
        assert dict(previews._built(sources)) == expected
        assert started[-1] == (previews._in_worker, workers, Conditions(1800.0, 60.0, setup=previews._set_up))


def test_a_worker_writes_into_its_folder_and_its_decoders_print_nothing(tmp_path, monkeypatch):
    levels = []
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(av.logging, "set_level", levels.append)
    monkeypatch.setattr(
        previews, "preview_of", lambda source: Preview(media=tempfile.gettempdir(), reason=source.audio)
    )
    previews._set_up()
    assert levels == [None]
    assert previews._in_worker(("key", PreviewSource("", "sound"), str(tmp_path)), None) == Preview(
        media=str(tmp_path), reason="sound"
    )


class Pool:
    """Workers that all die, in turn of slowness and of a crash."""

    def work_off(self, tasks):
        return [Lost(task, "SIGKILL", late=n % 2 == 0) for n, task in enumerate(tasks)]


def crash(task, report):
    """Stand in for `_in_worker`: a decoder that crashes while it has a temporary file."""
    tempfile.tempdir = task[2]
    tempfile.mkdtemp()
    os._exit(3)


def test_a_crash_leaves_no_temporary_files(tmp_path, spoken, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(previews, "_in_worker", crash)
    (found,) = make_previews([PreviewSource("", str(spoken))], cache=tmp_path / "cache")
    assert found == Preview(reason="crashed")
    assert not [*(tmp_path / "temporary").iterdir()]


def test_a_cache_that_cannot_be_written_costs_a_note(tmp_path, spoken):
    (tmp_path / "cache").write_text("a file")
    said = []
    (made,) = make_previews([PreviewSource("", str(spoken))], cache=tmp_path / "cache", on_note=said.append)
    assert made.type == "audio/mp4"
    assert len(said) == 1
    assert "cannot be cached" in said[0]
