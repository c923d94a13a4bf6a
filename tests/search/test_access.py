"""Access to the data of a served index: addresses, cookies, other pages."""

import json

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from aadml.search import access


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
        assert (status, content) == (403, b"other pages cannot read the index\n")
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
