"""Access to the data of a served index: addresses, cookies, other pages."""

import json
import socket

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import access, server
from aadml.search.uploads import ClientLimits


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
    assert paths > {*access.PAGE, "/facts"}
    for path in paths:
        method = "POST" if path in ("/search", "/judge") else "GET"
        for cookie in ("", f"{site.cookie}x", site.cookie[:-1], site.cookie.replace("=", "x="), "\xff="):
            status, content, _ = site.ask(path, method, Cookie=cookie)
            if path in access.PAGE:
                assert status == 200
                continue
            assert status == 403
            assert json.loads(content) == {"error": access.UNKNOWN_BROWSER}
    assert site.ask("/nowhere", Cookie="")[0] == 403
    assert site.ask("/nowhere")[0] == 404


@pytest.mark.parametrize("kind", ["cross-site", "same-site", "None", ""])
def test_other_pages_get_the_page_and_no_data(site, kind):
    data = ("/facts", "/like?number=3&from=audio&to=audio", "/picture?number=1", "/map?of=audio", "/clips")
    for path in (*data, "/nowhere"):
        status, content, _ = site.ask(path, Sec_Fetch_Site=kind)
        assert (status, content) == (403, b"other pages cannot read the index; open the page of the index\n")
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
    assert all(len(address.partition("token=")[2]) >= 43 for address in site.addresses)
    other = access.Access(site.port, site.addresses.append)
    assert other.exchange("", secure=False).headers.get("set-cookie") is None  # nothing was printed


TEAM = "0123456789abcdef" * 2


def guarded(path="/facts", root="", team=TEAM, **headers):
    """The status and the location of a request to a guarded app."""
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    from starlette.testclient import TestClient

    app = Starlette(routes=[Route(name, PlainTextResponse("data")) for name in ("/facts", "/")])
    place = access.Access(8765, lambda _: None, root=root, team=team)
    place.renew()
    client = TestClient(access.Guard(app, place, ClientLimits()), follow_redirects=False)
    return client.get(path, headers={"host": "search.example", **headers})


def test_a_token_of_the_team_admits_programs_and_any_number_of_browsers():
    assert guarded().status_code == 403
    for wrong in (f"Bearer {TEAM[:-1]}", f"Basic {TEAM}", f"Bearer {TEAM} ", TEAM, "Bearer"):
        assert guarded(authorization=wrong).status_code == 403 or wrong.strip() == f"Bearer {TEAM}"
    assert guarded(authorization=f"Bearer {TEAM}").text == "data"
    for origin in ("http://evil.example", "http://[", "null", "search.example"):
        assert guarded(authorization=f"Bearer {TEAM}", origin=origin).status_code == 403
    assert guarded(authorization=f"Bearer {TEAM}", origin="https://search.example").text == "data"
    assert guarded(team="", authorization="Bearer ", host="127.0.0.1:8765").status_code == 403
    for _ in range(2):
        answer = guarded(f"/?token={TEAM}", **{"x-forwarded-proto": "https"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("host", ["x/health?", "x:8765/?", "x/health#"])
def test_the_routed_path_decides_whatever_the_host_is_called(host):
    assert guarded(host=host).status_code == 403


@pytest.mark.parametrize("path", ["/clips/facts", "/facts"])
def test_a_proxy_may_keep_or_remove_the_root_path(path):
    assert guarded(path, root="/clips", authorization=f"Bearer {TEAM}").text == "data"
    answer = guarded("/clips/?token=" + TEAM, root="/clips")
    assert answer.headers["location"] == "/clips/"
    assert "path=/clips/;" in answer.headers["set-cookie"].lower()  # not for the other applications of the proxy


def test_beyond_this_machine_a_long_token_is_required(tmp_path):
    assert access.team_token("127.0.0.1", None) == ""
    with pytest.raises(InputError, match="pass --token-file FILE as well"):
        access.team_token("0.0.0.0", None)
    for content in ("short", "t" * 31, "t" * 201, f"{TEAM}\n{TEAM}", ""):
        (tmp_path / "token").write_text(content)
        with pytest.raises(InputError, match="does not contain one token of 32 to 200 letters"):
            access.team_token("0.0.0.0", tmp_path / "token")
    for token in (TEAM, "t" * 200):
        (tmp_path / "token").write_text(f"{token}\n")
        assert access.team_token("0.0.0.0", tmp_path / "token") == token
    with pytest.raises(InputError, match="cannot be read"):
        access.team_token("127.0.0.1", tmp_path / "nowhere")


def test_serving_beyond_this_machine_without_a_token_ends_before_the_index_is_opened():
    with pytest.raises(InputError, match="pass --token-file FILE as well"):
        aadml.serve("nowhere.index", host="0.0.0.0")


def test_an_address_for_other_machines_has_the_name_of_this_one(tmp_path, site, monkeypatch):
    (tmp_path / "token").write_text(TEAM)
    opened = []
    monkeypatch.setattr(
        server, "run", lambda app, host, port, limits, on_start: opened.append((host, port)) or on_start()
    )
    notes = []
    aadml.serve(site.index.path)
    assert opened == [("127.0.0.1", 8765)]
    options = {"host": "0.0.0.0", "port": 8800, "root_path": "/clips/", "token_file": tmp_path / "token"}
    aadml.serve(site.index.path, on_note=notes.append, **options)
    assert notes == [f"http://{socket.gethostname()}:8800/clips/?token={TEAM}"]


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_the_loopback_address_of_ipv6_needs_no_token_and_is_printed_in_brackets(site, monkeypatch, host):
    opened = []
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: opened.append(sockets[0].getsockname()))
    notes = []
    with server.listening(0, "::1") as free:
        port = free.getsockname()[1]
    aadml.serve(site.index.path, host=host, port=port, on_note=notes.append)
    assert opened[0][:2] == ("::1", port)
    assert notes[0].startswith(f"http://[::1]:{port}/?token=")


def test_an_index_is_closed_where_the_port_is_in_use(features, tmp_path):
    aadml.Index.build(features, tmp_path / "clips.index").close()
    before = sorted(tmp_path.iterdir())
    with server.listening(0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match="cannot be opened") as refused:
            aadml.serve(tmp_path / "clips.index", port=port)
    assert sorted(tmp_path.iterdir()) == before
    del refused  # its frames hold the index


@pytest.mark.parametrize("port", [70_000, -1])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(
        InputError, match=r"cannot be opened \(a port is a number from 0 to 65535\); choose another address"
    ):
        server.listening(port)


def test_a_root_path_is_a_plain_path():
    assert [access.checked_root(path) for path in ("", "/", "/clips/", "/a/b-c")] == ["", "", "/clips", "/a/b-c"]
    for path in ("clips", "/cl ips", "//x", "/a?b", f"/{'?' * 80}"):
        with pytest.raises(InputError) as refused:
            access.checked_root(path)
        assert str(refused.value) == (
            f"--root-path '{path[:80]}' does not consist of slashes, each followed by letters, digits, - . or _; "
            "pass a path such as /clips"
        )
