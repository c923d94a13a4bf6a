import importlib
import os
import signal
import time
from contextlib import nullcontext

import numpy as np
import pytest

from aadml.feature_extraction.engines import decoding_workers
from aadml.feature_extraction.engines.decoding_workers import DecodedPart, DecodingSettings, Task, Wanted, decode_all
from aadml.feature_extraction.engines.on_ray import DecodingActor
from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.media.inputs import Clip, Frames, Limits, MediaFailure, Sound, Text

# Effects of hostile files on a decoder, triggered by the length of a clip.
HOSTILE = """
import os, time
import numpy as np

def prepare(samples):
    tenths = round(len(samples) / 1600)
    if tenths == 13:
        while True:
            pass
    if tenths == 19:
        time.sleep(2.5)  # longer than the limit, but none of it processor time
    if tenths == 14:
        os.abort()
    if tenths == 15:
        raise LookupError("not for me")
    if tenths == 16:
        return np.array([np.nan])
    if tenths == 17:
        raise MemoryError
    return np.array([float(tenths)])

damages = []

def damaging(samples):
    if damages or round(len(samples) / 1600) == 14:
        os.abort()
    if round(len(samples) / 1600) == 20:
        damages.append("as the second release of memory: whatever this process does next kills it")
    return samples

def leave(samples):
    os._exit(3)
"""


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    (tmp_path / "hostile_decoder.py").write_text(HOSTILE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return importlib.import_module("hostile_decoder")


def run(media, wanted, workers=2, time_limit=30.0):
    tasks = (Task(number, each) for number, each in enumerate(media))
    done = decode_all(tasks, DecodingSettings(wanted, time_limit, Limits()), clips=len(media), workers=workers)
    return {task.number: parts for task, parts in done}


@pytest.mark.slow
def test_whatever_a_clip_does_costs_that_clip_alone(tmp_path, render, hostile):
    tenths = [10, 13, 11, 14, 12, 19, 15, 16, 17, 18]
    paths = [
        str(render(tmp_path / f"{each}.wav", seconds=each / 10, picture=False, codecs=("", "pcm_s16le")))
        for each in tenths
    ]
    wanted = {"audio": Wanted(Sound(16_000), hostile.prepare, 0.0), "visual": Wanted(Frames(), hostile.prepare, 0.0)}
    begin = time.monotonic()
    done = run([{"audio": path, "visual": path} for path in paths], wanted, time_limit=2.0)
    assert time.monotonic() - begin > 2.0
    found = {tenths[number]: {part.modality: part.reason for part in parts} for number, parts in done.items()}
    assert found == {
        **{each: {"audio": "", "visual": "no-video"} for each in (10, 11, 12, 18, 19)},
        13: {"audio": "timeout"},  # after these two the other modality is not tried
        14: {"audio": "crashed"},
        15: {"audio": "crashed", "visual": "no-video"},
        16: {"audio": "corrupt", "visual": "no-video"},
        17: {"audio": "too-large", "visual": "no-video"},
    }
    details = {tenths[number]: parts[0].detail for number, parts in done.items()}
    assert "SIGABRT" in details[14]
    assert details[15] == "LookupError: not for me"
    assert [parts[0].prepared.tolist() for number, parts in done.items() if tenths[number] == 11] == [[11.0]]


def test_a_part_that_came_before_the_crash_is_kept(tmp_path, render, hostile):
    path = str(render(tmp_path / "a.mp4"))
    wanted = {"audio": Wanted(Sound(16_000), np.abs, 0.0), "visual": Wanted(Frames(), hostile.leave, 0.0)}
    audio, visual = run([{"audio": path, "visual": path}], wanted, workers=1)[0]
    assert (audio.reason, len(audio.prepared)) == ("", 19_200)
    assert (visual.reason, visual.detail) == ("crashed", "the decoding process ended with exit status 3")


@pytest.fixture
def sounds(tmp_path, render):
    def rendered(*tenths):
        return [
            str(render(tmp_path / f"{each}.wav", seconds=each / 10, picture=False, codecs=("", "pcm_s16le")))
            for each in tenths
        ]

    return rendered


@pytest.mark.parametrize("workers", [1, 2])
def test_a_death_that_an_earlier_clip_caused_is_not_charged_to_the_next_one(sounds, hostile, workers):
    paths = sounds(10, 20, 11, 14, 12, 20, 13)
    done = run([{"audio": path} for path in paths], {"audio": Wanted(Sound(16_000), hostile.damaging, 0.0)}, workers)
    assert {number: part.reason for number, (part,) in done.items()} == {
        **dict.fromkeys((0, 1, 2, 4, 5, 6), ""),
        3: "crashed",
    }
    assert done[3][0].detail == "the decoding process ended with SIGABRT"
    assert len(done[2][0].prepared) == 17_600


def test_an_actor_of_ray_decodes_a_clip_again_whose_process_died(sounds, hostile):
    wanted = {"audio": Wanted(Sound(16_000), hostile.damaging, 0.0)}
    decoder = DecodingActor(DecodingSettings(wanted, 30.0, Limits()))
    try:
        clips = [decoder.decode(Task(number, {"audio": path})) for number, path in enumerate(sounds(20, 11, 14, 12))]
    finally:
        decoder._pool.__exit__(None, None, None)
    assert [part.reason for (part,) in clips] == ["", "", "crashed", ""]


def test_silence_is_accepted_with_a_remark(tmp_path, render):
    path = str(render(tmp_path / "a.wav", tone=0.0, picture=False, codecs=("", "pcm_s16le")))
    (part,) = run([{"audio": path}], {"audio": Wanted(Sound(16_000), np.abs, 0.0)}, workers=1)[0]
    assert (part.reason, part.warnings) == ("", ("all samples of the sound are zero",))


def test_no_tasks_start_no_process():
    assert run([], {}) == {}


def test_a_process_that_cannot_start_is_a_defect_not_a_bad_clip(tmp_path, hostile):
    wanted = {"audio": Wanted(Sound(16_000), hostile.prepare, 0.0)}
    (tmp_path / "hostile_decoder.py").write_text("raise ImportError('gone')")
    os.utime(tmp_path / "hostile_decoder.py", (1, 1))
    with pytest.raises(RuntimeError, match="ended with exit status 1 at its start"):
        run([{"audio": "a.wav"}], wanted, workers=1)


def test_no_process_is_left_when_the_caller_stops_early(tmp_path, render):
    import multiprocessing

    path = str(render(tmp_path / "a.mp4"))
    tasks = (Task(number, {"audio": path}) for number in range(100))
    wanted = {"audio": Wanted(Sound(16_000), np.abs, 0.0)}
    done = decode_all(tasks, DecodingSettings(wanted, 30.0, Limits()), clips=100, workers=2)
    next(done)
    done.close()
    assert multiprocessing.active_children() == []


def test_threads_are_told_to_the_processes_and_not_left_behind(tmp_path, render, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    path = str(render(tmp_path / "a.mp4"))
    run([{"audio": path}], {"audio": Wanted(Sound(16_000), np.abs, 0.0)}, workers=1)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (MediaFailure("corrupt", "cut short"), "corrupt", "cut short"),
        (MemoryError(), "too-large", "not enough memory"),
        (ValueError("a\nfault"), "crashed", "ValueError: a fault"),
        (None, "corrupt", "the features contain NaN or infinity"),
    ],
)
def test_a_failure_of_a_part_has_its_reason(monkeypatch, error, reason, detail):
    def decode(*_):
        if error is not None:
            raise error
        return Clip(np.ones(9000, np.float32))

    monkeypatch.setattr(decoding_workers, "decode", decode)
    wanted = {"audio": Wanted(Sound(8000), lambda values: np.where(np.arange(9000), values, np.nan), 0.0)}
    part = decoding_workers._decoded(wanted, Limits(), Task(0, {"audio": "a.wav"}), None)
    assert part == DecodedPart("audio", reason=reason, detail=detail)


def test_parts_are_prepared_pooled_and_reported_in_their_order(monkeypatch):
    calls, reported = [], []
    clip = Clip(np.ones(9000, np.float32), remarks=("cut",), start=0.5, seconds=2.0)
    monkeypatch.setattr(decoding_workers, "decode", lambda *call: calls.append(call) or clip)
    sound, text = Sound(8000), Text()
    wanted = {"audio": Wanted(sound, lambda v: v[:3], 0.25, pool=np.sum), "text": Wanted(text, lambda v: v[:2], 0.0)}
    limits, segment = Limits(), Segment(1.0, 2.0)
    task = Task(0, {"audio": "a.wav", "text": "words"}, segment)
    last = decoding_workers._decoded(wanted, limits, task, reported.append)
    assert calls == [("a.wav", sound, limits, 0.25, segment), ("words", text, limits, 0.0, segment)]
    (first,) = reported
    assert (float(first.prepared), first.prepared.shape) == (3.0, ())
    assert first.fingerprint.shape == (256,)
    assert (last.prepared.tolist(), last.fingerprint) == ([1, 1], None)
    for part, modality in ((first, "audio"), (last, "text")):
        assert (part.modality, part.warnings, part.start, part.seconds) == (modality, ("cut",), 0.5, 2.0)


def test_decoders_have_the_limits_of_their_settings(monkeypatch):
    seen = []
    monkeypatch.setattr(
        decoding_workers, "worker_pool", lambda work, *given: seen.append((work.args, *given)) or "pool"
    )
    settings = DecodingSettings({"text": "wanted"}, 2.0, Limits(seconds=3.0), gives_way=True)
    assert decoding_workers.decoders(settings, 4) == "pool"
    ((arguments, workers, conditions),) = seen
    assert (arguments, workers) == (({"text": "wanted"}, Limits(seconds=3.0)), 4)
    assert (conditions.time_limit, conditions.processor_limit, conditions.gives_way) == (60.0, 2.0, True)
    assert (conditions.one_thread, conditions.grace, conditions.setup.args) == (True, 0.0, (None,))


@pytest.mark.parametrize(("workers", "clips", "count"), [(None, 9, 3), (2, 9, 2), (5, 4, 4)])
def test_there_are_no_more_processes_than_clips_and_one_for_each_suspect(monkeypatch, workers, clips, count):
    pools = []

    def decoded(pool, tasks, suspects=None):
        if suspects is not None:
            suspects.extend(tasks)
        else:
            yield from ((task, []) for task in tasks)

    monkeypatch.setattr(decoding_workers, "processors", lambda: 3)
    monkeypatch.setattr(decoding_workers, "decoders", lambda _, number: pools.append(number) or nullcontext())
    monkeypatch.setattr(decoding_workers, "decoded_by", decoded)
    tasks = [Task(number, {}) for number in range(2)]
    done = decode_all(iter(tasks), DecodingSettings({}, 2.0, Limits()), clips=clips, workers=workers)
    assert [task for task, _ in done] == tasks
    assert pools == [count, 1, 1]
