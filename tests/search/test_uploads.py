"""Uploads: limits of size and time."""

import asyncio
import json
import socket
import wave

import cv2
import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from starlette.exceptions import HTTPException
from starlette.requests import Request

from aadml.search import Index, access
from aadml.search.uploads import ClientLimits, uploaded

LIMITS = ClientLimits(bytes=200_000, seconds=1.5, connections=8)


def test_the_limits_of_a_server_are_those_of_the_guide():
    limits = ClientLimits()
    assert (limits.bytes, limits.seconds, limits.waiting, limits.connections) == (100_000_000, 60, 120, 256)
    assert (limits.answers, limits.previews, limits.views, limits.uploads, limits.filter) == (2, 2, 4, 64, 0.2)


def test_an_upload_without_the_cookie_hears_why(site):
    for _ in range(5):
        status, content, _ = site.ask("/search?kind=audio&to=audio", "POST", b"x" * 3_000_000, Cookie="")
        assert (status, json.loads(content)["error"]) == (403, access.UNKNOWN_BROWSER)


def test_hostile_and_huge_uploads_are_refused_and_the_server_stays(site):
    place = "/search?kind=audio&to=audio"
    status, content, _ = site.ask(place, "POST", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", X_Name="a.m3u8")
    assert status == 400
    assert b"root:" not in content
    assert b"/tmp" not in content
    status, content, _ = site.ask(place, "POST", b"x" * 300_000)
    assert (status, json.loads(content)["error"]) == (413, "the file is larger than 0.2 MB; use a smaller file")
    status, content, _ = site.ask(place, "POST", (b"x" * 10_000 for _ in range(30)))  # in chunks, of no stated length
    assert status == 413
    assert site.ask(place, "POST", b"")[0] == 400
    assert site.ask(place, "POST", b"", Content_Length="-5")[0] in (400, 413)
    assert site.ask("/search?kind=smell&to=audio", "POST", b"x")[0] == 400
    assert site.ask(place, "POST", b"x", X_Name="..%2F..%2Fsecret.txt")[0] == 400
    assert site.ask("/facts")[0] == 200


def test_a_form_is_refused_with_the_remedy(site):
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nsound\r\n--x--\r\n'
    kind = "Multipart/form-data; boundary=x"
    status, content, _ = site.ask("/search?kind=audio&to=audio", "POST", form, Content_Type=kind)
    message = "the body is a form; send the file itself as the body (curl --data-binary @FILE)"
    assert (status, json.loads(content)["error"]) == (415, message)


def test_who_sends_too_much_before_it_listens_hears_why(site):
    for _ in range(20):  # it was a matter of luck
        assert site.ask("/search?kind=audio&to=audio", "POST", b"x" * 3_000_000)[0] == 413
        chunks = (b"x" * 10_000 for _ in range(300))
        assert site.ask("/search?kind=audio&to=audio", "POST", chunks)[0] == 413


def test_who_asks_before_it_sends_too_much_is_told_at_once(site):
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as one:
        head = f"Host: 127.0.0.1:{site.port}\r\nCookie: {site.cookie}\r\n"
        head += "Content-Length: 9000000\r\nExpect: 100-continue\r\n\r\n"
        one.sendall(b"POST /search?kind=audio&to=audio HTTP/1.1\r\n" + head.encode())
        assert one.recv(4096).startswith(b"HTTP/1.1 413")


def test_an_upload_never_takes_more_room_on_disk_than_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sizes = []

    async def receive():
        sizes.append(sum(file.stat().st_size for file in tmp_path.rglob("question*")))
        return {"type": "http.request", "body": b"x" * 100_000, "more_body": len(sizes) < 10}

    async def upload():
        async with uploaded(Request({"type": "http", "headers": []}, receive), LIMITS):
            pass

    with pytest.raises(HTTPException) as error:
        asyncio.run(upload())
    assert error.value.status_code == 413
    assert sizes[:2] == [0, 100_000]
    assert max(sizes) == LIMITS.bytes


@pytest.mark.parametrize(("name", "suffix"), [("a%20b.WAV", ".wav"), ("a.png", ".png"), ("a.m3u8", ""), ("", "")])
def test_an_upload_keeps_the_suffix_of_a_media_file(name, suffix):
    async def receive():
        return {"type": "http.request", "body": b"sound", "more_body": False}

    async def upload():
        headers = [(b"x-name", name.encode()), (b"content-length", b"200000")]
        async with uploaded(Request({"type": "http", "headers": headers}, receive), LIMITS) as path:
            return path, path.name, path.read_bytes()

    path, *found = asyncio.run(upload())
    assert found == [f"question{suffix}", b"sound"]
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("late", "status", "says", "headers"),
    [
        (True, 408, "the file took longer than 0.01 s to arrive; use a smaller file", {"Connection": "close"}),
        (False, 400, "the file arrived only in part; send the file again", None),
    ],
)
def test_an_upload_that_is_late_or_broken_off_is_refused(late, status, says, headers):
    async def receive():
        await asyncio.sleep(5 * late)
        return {"type": "http.disconnect"}

    async def upload():
        async with uploaded(Request({"type": "http", "headers": []}, receive), ClientLimits(seconds=0.01)):
            pass

    with pytest.raises(HTTPException) as error:
        asyncio.run(upload())
    assert (error.value.status_code, error.value.detail, error.value.headers) == (status, says, headers)


@pytest.mark.slow
def test_an_upload_asks_and_leaves_nothing_behind(tmp_path, monkeypatch, served):
    generator = np.random.default_rng(0)
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(3):
        blocks = np.kron(generator.integers(0, 256, (3, 4, 3)), np.ones((20, 20, 1))).astype(np.uint8)
        cv2.imwrite(str(folder / f"{number}.png"), blocks)
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    site = served(Index.build(folder, tmp_path / "i", workers=1), LIMITS)
    body = (folder / "1.png").read_bytes()
    status, content, _ = site.ask("/search?kind=visual&to=visual&k=2", "POST", body, X_Name="q.png")
    hits = json.loads(content)["hits"]
    assert status == 200
    assert hits[0]["id"] == "1.png"
    assert list(temporary.glob("aadml-question-*")) == []
    status, content, _ = site.ask("/search?kind=visual&to=visual", "POST", b"no picture", X_Name="caf%C3%A9.png")
    assert status == 400
    assert json.loads(content)["error"].startswith("café.png cannot be read as visual")
    picture = f"/picture?number={hits[0]['number']}"
    status, content, headers = site.ask(picture)
    assert (status, headers["content-type"], headers["cache-control"]) == (200, "image/jpeg", "private, no-cache")
    assert cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR).shape == (60, 80, 3)
    assert site.ask(picture, If_None_Match=headers["etag"])[:2] == (304, b"")
    assert site.ask(picture, If_None_Match=headers["etag"], Cookie="")[0] == 403
    assert site.ask(f"/media?number={hits[0]['number']}")[0] == 404  # a still picture does not play
    (folder / "1.png").unlink()
    status, content, _ = site.ask(picture, If_None_Match=headers["etag"])
    assert status == 404
    assert json.loads(content)["error"].startswith("the file does not exist")


def test_a_decoder_runs_before_the_first_question(tmp_path, monkeypatch, served):
    begun, sounds = [], []
    search = Index.search

    def noted(self, *, audio, **asked):
        with wave.open(str(audio), "rb") as file:
            sounds.append((audio.name, file.getparams()[:4], file.readframes(20_000)))
        begun.append((asked, search(self, audio=audio, **asked).hits))

    monkeypatch.setattr(Index, "search", noted)
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(np.random.default_rng(0).integers(-9000, 9000, 48_000).astype("<i2").tobytes())
    (tmp_path / "clips.csv").write_text("id,audio,visual,label,split\na,a.wav,,x,test\n")
    site = served(Index.build(tmp_path / "clips.csv", tmp_path / "clips.index", workers=1), ClientLimits())
    site.stop()  # waits for what was begun
    ((asked, hits),) = begun
    assert asked == {"to": "audio", "k": 1}
    assert sounds == [("silence.wav", (1, 2, 16_000, 16_000), bytes(32_000))]
    assert [hit.id for hit in hits] == ["a"]
