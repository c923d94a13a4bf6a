"""Pages of other origins in a browser that has the cookie: no data, and no query that they could time."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, urlsplit

import pytest

pytestmark = pytest.mark.slow
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from aadml.data.synthetic import synthetic  # noqa: E402
from aadml.feature_extraction.feature_file.writing import write_features  # noqa: E402
from aadml.search import Index  # noqa: E402
from aadml.search.uploads import ClientLimits  # noqa: E402

SLOW = "exists(select 1 from item a, item b, item c, item d, item e where a.id || b.id || c.id || d.id || e.id = '')"
TRUE, FALSE = "exists(select 1 from item)", "exists(select 1 from item where id = 'nobody')"

ATTACK = """async (address) => {
  const element = (name, where, kind = "src") => new Promise((resolve) => {
    const made = Object.assign(document.createElement(name), { rel: "stylesheet" });
    made.onload = () => resolve("load"); made.onerror = () => resolve("error");
    made[kind] = where; document.body.append(made); });
  const ask = (options) => fetch(address, options).then((reply) => reply.text()
    .then((text) => `${reply.type} ${reply.status} ${text}`), (error) => error.name);
  const image = (where) => new Promise((resolve) => {
    const made = new Image(); made.onload = () => resolve("load"); made.onerror = () => resolve("error");
    made.src = where; });
  const include = { credentials: "include", cache: "no-store" };
  return [await image(address), await image(`/bounce?to=${encodeURIComponent(address)}`),
    await element("script", address), await element("link", address, "href"), await element("iframe", address),
    await element("video", address), await ask(include), await ask({ ...include, mode: "no-cors" }),
    await ask({ ...include, mode: "no-cors", method: "POST", body: "x" })];
}"""


class Elsewhere(BaseHTTPRequestHandler):
    """An empty page, and a redirection to any address."""

    def do_GET(self):
        split = urlsplit(self.path)
        self.send_response(302 if split.path == "/bounce" else 200)
        self.send_header("Content-Type", "text/html")
        if split.path == "/bounce":
            self.send_header("Location", parse_qs(split.query)["to"][0])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def elsewhere():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def site(tmp_path_factory, served):
    folder = tmp_path_factory.mktemp("site")
    write_features(folder / "f.h5", synthetic(classes=3, train=20, valid=5, test=10, dimensions=(6, 8), difficulty=0.3))
    return served(Index.build(folder / "f.h5", folder / "clips.index"), ClientLimits())


@pytest.fixture
def queries(monkeypatch):
    """The conditions of all queries that the server begins."""
    begun = []
    like = Index.like

    def noted(self, *args, where, **options):
        begun.append(where)
        return like(self, *args, where=where, **options)

    monkeypatch.setattr(Index, "like", noted)
    monkeypatch.setattr(Index, "search", lambda *_, **__: begun.append("search"))
    monkeypatch.setattr(Index, "item", lambda *_: begun.append("item"))
    return begun


@pytest.fixture
def page(browser, site):
    """A page of the server, in a browser that has opened the printed address."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(site.addresses[-1])
        page.wait_for_function("() => document.title === 'clips.index'")
        page.wait_for_load_state("networkidle")  # its own requests would count as answers to another page
        yield page


def like(site, predicate, host="127.0.0.1"):
    condition = quote(f"{predicate} and {SLOW}")
    return f"http://{host}:{site.port}/like?number=1&from=audio&to=audio&where={condition}"


def test_the_page_itself_would_learn_the_predicate(page, site, queries):
    found = [page.evaluate(ATTACK, like(site, predicate))[6] for predicate in (TRUE, FALSE)]
    assert "takes longer than 0.2 s" in found[0]
    assert '"hits":[]' in found[1]
    assert any(TRUE in where for where in queries)
    assert any(FALSE in where for where in queries)


@pytest.mark.parametrize("attacker", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_another_origin_learns_nothing(page, site, elsewhere, queries, attacker, host):
    other = page.context.new_page()
    other.goto(f"http://{attacker}:{elsewhere}/")
    del site.answered[:]
    results, statuses = [], []
    for predicate in (TRUE, FALSE):
        results.append(other.evaluate(ATTACK, like(site, predicate, host)))
        other.wait_for_load_state("networkidle")
        statuses.append([(path, status) for path, _, status in site.answered])
        del site.answered[:]
    assert results[0] == results[1]
    assert statuses[0] == statuses[1]
    assert len(statuses[0]) >= 9
    assert set(statuses[0]) == {("/like", 403)}
    for address in (
        "facts",
        "picture?number=1",
        "media?number=1",
        "clips",
        "map?of=audio",
        "judge?query=a&item=b&grade=1",
        "search?kind=text&text=rain&to=audio",
    ):
        other.evaluate(ATTACK, f"http://{host}:{site.port}/{address}")
    assert {(site, status) for _, site, status in site.answered} <= {("cross-site", 403), ("same-site", 403)}
    assert queries == []
    with other.expect_response("**/like?*") as response:  # a link that is followed
        other.evaluate("(address) => { location.href = address; }", like(site, TRUE, host))
    assert response.value.status == 403
    assert queries == []


def test_an_address_of_data_that_was_typed_or_bookmarked_is_answered(page, site):
    response = page.context.new_page().goto(f"http://127.0.0.1:{site.port}/like?number=1&from=audio&to=audio&k=3")
    assert response.status == 200
    assert len(response.json()["hits"]) == 3


def test_a_browser_that_opened_no_printed_address_is_told_and_a_new_address_opens_it(browser, page, site):
    page_url = f"http://127.0.0.1:{site.port}/"
    assert page.url == page_url
    assert "token" not in page.content()
    again = page.context.new_page()
    again.goto(page_url)
    again.wait_for_function("() => document.title === 'clips.index'")
    with browser.new_context() as context:
        second = context.new_page()
        for address in (page_url, site.addresses[-2]):
            second.goto(address)
            second.wait_for_function("() => document.getElementById('said')?.className === 'wrong'")
            assert "open the address" in second.inner_text("#said")
            assert second.url == page_url
        second.goto(site.addresses[-1])
        second.wait_for_function("() => document.title === 'clips.index'")


def test_a_link_elsewhere_to_the_page_opens_it(page, site, elsewhere):
    other = page.context.new_page()
    other.goto(f"http://localhost:{elsewhere}/")
    other.evaluate("(address) => { location.href = address; }", f"http://127.0.0.1:{site.port}/")
    other.wait_for_function("() => document.title === 'clips.index'")
