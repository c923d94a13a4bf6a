"""The server of the page: what it answers, and what it refuses to everybody."""

import json
import socket
import time
from urllib.parse import quote

import cv2
import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index, access
from aadml.search import server as server_room
from aadml.search.uploads import ClientLimits

LIMITS = ClientLimits(bytes=200_000, seconds=1.5, connections=8)


@pytest.fixture(scope="module")
def site(tmp_path_factory, served):
    folder = tmp_path_factory.mktemp("site")
    write_features(folder / "f.h5", synthetic(classes=3, train=20, valid=5, test=10, dimensions=(6, 8), difficulty=0.3))
    (folder / "secret.txt").write_text("nobody reads this")
    return served(Index.build(folder / "f.h5", folder / "clips.index"), LIMITS)


def test_the_page_and_its_parts_load_nothing_from_elsewhere(site):
    for path, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")):
        status, content, headers = site.ask(path)
        assert status == 200
        assert headers["content-type"].startswith(kind)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert b"http://" not in content
        assert b"https://" not in content


def test_facts(site):
    status, content, _ = site.ask("/facts")
    found = json.loads(content)
    assert status == 200
    assert found["items"] == 35
    assert found["questions"] == [["audio", "audio"], ["visual", "visual"], ["clip", "audio"], ["clip", "visual"]]
    assert found["columns"][:3] == ["id", "split", "label"]
    assert found["model"] == "no model: each modality by itself"


def test_a_clip_of_the_index_asks(site):
    status, content, _ = site.ask("/like?number=3&from=audio&to=audio&k=5&where=")
    found = json.loads(content)
    assert status == 200
    assert found["hits"][0]["number"] == 3
    assert len(found["hits"]) == 5
    assert "media" not in found["hits"][0]
    status, content, _ = site.ask("/like?number=3&from=audio&to=audio&where=label+%3D+%27nothing%27")
    assert json.loads(content)["hits"] == []


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/like?number=99999&from=audio&to=audio", "clip number 99999 of this index does not exist"),
        ("/like?number=1&from=audio&to=visual", "built without a model"),
        ("/like?number=1&from=audio&to=smell", "is not a modality"),
        ("/like?number=-1&from=audio&to=audio", "is not a whole number"),
        ("/like?number=1&from=audio&to=audio&k=1000000", "1 to 100"),
        ("/like?number=1&from=audio&to=audio&where=1)%20UNION%20SELECT%20value%20FROM%20meta", "where"),
        ("/previews?numbers=../../secret.txt", "is not a whole number"),
        ("/previews?numbers=1,2,3,4,5,6,7,8,9", "ask for at most 8"),
        ("/previews?numbers=" + "9" * 400, "is not a whole number"),
        ("/previews?numbers=%D9%A1", "is not a whole number"),
        ("/previews?numbers=777", "clip number 777 is not in this index"),
    ],
)
def test_a_wrong_question_is_a_sentence(site, path, says):
    status, content, _ = site.ask(path)
    assert status == 400
    assert says in json.loads(content)["error"]


@pytest.mark.parametrize(
    "path",
    ["/secret.txt", "/../secret.txt", "/%2e%2e/secret.txt", "/page.js/../../secret.txt", "//etc/passwd", "/page.css%00",
     "/clips.index", "/page/page.html"],
)  # fmt: skip
def test_no_file_has_an_address(site, path):
    status, content, _ = site.ask(path)
    assert status == 404
    assert b"nobody reads" not in content


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": ""},
        {"Host": "127.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_what_is_not_addressed_to_this_machine_is_refused(site, headers):
    status, content, _ = site.ask("/facts", **headers)
    assert status in (400, 403)
    assert b"items" not in content


def test_every_route_but_the_page_needs_the_cookie(site):
    paths = {route.path for route in site.app.routes}
    assert paths > {"/", "/page.css", "/page.js", "/facts"}
    for path in paths:
        method = "POST" if path == "/search" else "GET"
        for cookie in ("", f"{site.cookie}x", site.cookie[:-1], site.cookie.replace("=", "x="), "\xff="):
            status, content, _ = site.ask(path, method, Cookie=cookie)
            if path in ("/", "/page.css", "/page.js"):
                assert status == 200
                continue
            assert status == 403
            assert json.loads(content) == {"error": access.UNKNOWN_BROWSER}
    assert site.ask("/nowhere", Cookie="")[0] == 403
    assert site.ask("/nowhere")[0] == 404


@pytest.mark.parametrize("kind", ["cross-site", "same-site", "None", ""])
def test_other_pages_get_the_page_and_no_data(site, kind):
    for path in ("/facts", "/like?number=3&from=audio&to=audio", "/previews?numbers=1", "/nowhere"):
        status, content, _ = site.ask(path, Sec_Fetch_Site=kind)
        assert (status, content) == (403, b"the index is not open to other pages\n")
    assert site.ask("/search?kind=audio&to=audio", "POST", b"x", Sec_Fetch_Site=kind)[:2] == (403, content)
    assert site.ask("/", Sec_Fetch_Site=kind)[0] == 200


@pytest.mark.parametrize("kind", ["same-origin", "none"])
def test_the_page_and_bookmarks_get_data(site, kind):
    status, content, _ = site.ask("/like?number=3&from=audio&to=audio&k=5", Sec_Fetch_Site=kind)
    assert status == 200
    assert len(json.loads(content)["hits"]) == 5


def test_a_printed_address_opens_one_browser_and_the_next_one_another(site):
    printed = len(site.addresses)
    first = site.addresses[-1].removeprefix(f"http://127.0.0.1:{site.port}")
    assert site.ask(f"{first}x", Cookie="")[2]["set-cookie"] is None
    assert site.ask(first, "HEAD", Cookie="")[2]["set-cookie"] is None  # a look ahead does not use it up
    assert len(site.addresses) == printed
    assert site.opened_browser() == site.cookie
    assert len(site.addresses) == printed + 1
    status, _, headers = site.ask(first, Cookie="")
    assert (status, headers["location"], headers["set-cookie"]) == (303, "/", None)
    assert site.opened_browser() == site.cookie
    assert len(set(site.addresses)) == len(site.addresses) == printed + 2


def test_the_cookie_is_for_this_site_and_not_for_scripts_and_is_not_the_token(site):
    headers = site.ask(site.addresses[-1].removeprefix(f"http://127.0.0.1:{site.port}"), Cookie="")[2]
    cookie, *attributes = headers["set-cookie"].split("; ")
    name, _, value = cookie.partition("=")
    assert name == f"aadml-{site.port}"
    assert {one.lower() for one in attributes} == {"httponly", "path=/", "samesite=strict"}
    assert len(value) >= 43  # 32 random bytes
    assert all(value not in address for address in site.addresses)
    other = access.Access(site.port, site.addresses.append)
    assert other.exchange("").headers.get("set-cookie") is None  # nothing was printed


def test_an_upload_without_the_cookie_hears_why(site):
    for _ in range(5):
        status, content, _ = site.ask("/search?kind=audio&to=audio", "POST", b"x" * 3_000_000, Cookie="")
        assert (status, json.loads(content)["error"]) == (403, access.UNKNOWN_BROWSER)


def test_a_filter_of_the_page_gets_a_fifth_of_a_second(site):
    slow = (
        "exists(select 1 from item a, item b, item c, item d, item e where a.id || b.id || c.id || d.id || e.id = '')"
    )
    status, content, _ = site.ask(f"/like?number=3&from=audio&to=audio&where={quote(slow)}")
    assert status == 400
    assert json.loads(content)["error"].endswith("the condition takes longer than 0.2 s; simplify it")


def test_it_listens_to_this_machine_alone_and_a_taken_port_is_one_line(site):
    assert site.socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(InputError, match=r"cannot be opened.*choose another"):
        server_room.listening(site.port)


def test_it_writes_nothing(site):
    for method in ("PUT", "DELETE", "PATCH"):
        assert site.ask("/search", method)[0] == 405
    assert site.ask("/search")[0] == 405


def test_hostile_and_huge_uploads_are_refused_and_the_server_stays(site):
    place = "/search?kind=audio&to=audio"
    status, content, _ = site.ask(place, "POST", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", X_Name="a.m3u8")
    assert status == 400
    assert b"root:" not in content
    assert b"/tmp" not in content
    status, content, _ = site.ask(place, "POST", b"x" * 300_000)
    assert (status, json.loads(content)["error"]) == (413, "the file is larger than 0.2 MB")
    status, content, _ = site.ask(place, "POST", (b"x" * 10_000 for _ in range(30)))  # in chunks, of no stated length
    assert status == 413
    assert site.ask(place, "POST", b"")[0] == 400
    assert site.ask(place, "POST", b"", Content_Length="-5")[0] in (400, 413)
    assert site.ask("/search?kind=smell&to=audio", "POST", b"x")[0] == 400
    assert site.ask(place, "POST", b"x", X_Name="..%2F..%2Fsecret.txt")[0] == 400
    assert site.ask("/facts")[0] == 200


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


def test_words_without_a_model_that_reads_are_refused(site):
    status, content, _ = site.ask("/search?kind=text&text=rain&to=audio", "POST")
    assert status == 400
    assert "does not read words" in json.loads(content)["error"]


@pytest.mark.slow
def test_slow_clients_are_ended_and_others_are_answered(site, monkeypatch):
    monkeypatch.setattr(server_room, "HEADER_SECONDS", 1.0)
    slow = [socket.create_connection(("127.0.0.1", site.port), timeout=30) for _ in range(4)]
    slow[0].sendall(b"GET /facts HTTP/1.1\r\nHost: ")  # never a whole head
    host = f"127.0.0.1:{site.port}\r\nCookie: {site.cookie}".encode()
    head = b"POST /search?kind=audio&to=audio HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: 1000\r\n\r\n"
    slow[1].sendall(head + b"a")  # never a whole body
    slow[2].sendall(b"GET /facts HTTP/1.1\r\nHost: " + host + b"\r\n\r\nGET /facts HT")  # never a second head
    assert site.ask("/facts")[0] == 200
    said = [b"".join(iter(lambda one=one: one.recv(4096), b"")) if one else b"" for one in slow]  # until it is closed
    assert said[0] == said[3] == b""
    assert b"408" in said[1].splitlines()[0]
    assert b'"items":35' in said[2]
    for one in slow:
        one.close()
    assert site.ask("/facts")[0] == 200


def test_many_connections_are_refused_and_then_taken_again(site):
    held = [socket.create_connection(("127.0.0.1", site.port), timeout=30) for _ in range(12)]
    time.sleep(0.3)
    assert site.ask("/facts")[0] == 503
    for one in held:
        one.close()
    time.sleep(0.5)
    assert site.ask("/facts")[0] == 200


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
    assert json.loads(content)["error"].startswith("café.png: cannot be read as visual")
    status, content, _ = site.ask(f"/previews?numbers={hits[0]['number']}")
    (preview,) = json.loads(content)
    assert status == 200
    assert preview["picture"]
    (folder / "1.png").unlink()
    status, content, _ = site.ask(f"/previews?numbers={hits[0]['number']}")
    assert (status, json.loads(content)[0]["picture"]) == (200, "")
