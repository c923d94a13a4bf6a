from pathlib import Path

import av
import numpy as np

from aadml.data.samples.clip import FRAME_RATE, render_clip
from aadml.data.samples.mp4 import write_mp4
from aadml.data.samples.sound import RATE


def written(path):
    clip = render_clip("metronome", 3, seconds=1.0, seed=0)
    write_mp4(path, clip.pictures, clip.sound, frame_rate=FRAME_RATE, rate=RATE)
    return clip


def test_is_h264_with_aac_and_decodes_to_what_was_written(tmp_path):
    clip = written(tmp_path / "clip.mp4")
    with av.open(str(tmp_path / "clip.mp4")) as container:
        assert container.streams.video[0].codec_context.name == "h264"
        assert container.streams.audio[0].codec_context.name == "aac"
        frames = [frame.to_ndarray(format="bgr24") for frame in container.decode(video=0)]
    with av.open(str(tmp_path / "clip.mp4")) as container:
        sound = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])
    assert len(frames) == FRAME_RATE
    assert np.abs(np.stack(frames).astype(int) - clip.pictures).mean() < 8
    assert abs(len(sound) - RATE) <= 2048
    shared = min(len(sound), len(clip.sound))
    lag = np.argmax(np.correlate(sound[:shared], clip.sound[:shared], "full")) - (shared - 1)
    assert abs(lag) < RATE / FRAME_RATE / 2  # sound and picture stay together within half a frame


def test_the_same_clip_gives_the_same_bytes(tmp_path):
    written(tmp_path / "one.mp4")
    written(tmp_path / "two.mp4")
    assert (tmp_path / "one.mp4").read_bytes() == (tmp_path / "two.mp4").read_bytes()


def test_a_relative_path_like_an_address_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("http:/127.0.0.1:9/x.mp4", "md5:x.mp4"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        written(Path(name))
        assert Path(name).is_file()
