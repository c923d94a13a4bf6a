"""A server of an index in a thread of its own."""

import asyncio
import http.client
import threading
import time
from dataclasses import replace

import pytest

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.search import Index
from tests.search.small_index import COLUMNS, FACTS, create, entry, with_timeline


class Site:
    """A server in a thread of its own, and clients with its cookie.

    Attributes:
        addresses: all that were printed.
        answered: path, `Sec-Fetch-Site` and status of every response.
    """

    def __init__(self, index, limits):
        import uvicorn

        from aadml.search.access import Access
        from aadml.search.app import application
        from aadml.search.server import Impatient, listening

        self.addresses, self.answered = [], []
        self.socket = listening(0)
        self.port = self.socket.getsockname()[1]
        self.access = Access(self.port, self.addresses.append)
        self.access.renew()
        self.index = index
        self.app = application(index, self.access, limits)
        config = uvicorn.Config(
            self.recording(self.app), http=Impatient, ws="none", log_level="critical",
            limit_concurrency=limits.connections, timeout_graceful_shutdown=1,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve([self.socket])), daemon=True)
        self.thread.start()
        until = time.monotonic() + 30
        while not self.server.started and time.monotonic() < until:
            time.sleep(0.02)
        assert self.server.started
        self.cookie = self.opened_browser()

    def recording(self, app):
        async def recorded(scope, receive, send):
            async def noted(message):
                if message["type"] == "http.response.start":
                    site = dict(scope["headers"]).get(b"sec-fetch-site", b"").decode()
                    self.answered.append((scope["path"], site, message["status"]))
                await send(message)

            await app(scope, receive, noted if scope["type"] == "http" else send)

        return recorded

    def opened_browser(self):
        """Open the address that was printed last, and return the cookie."""
        before = len(self.addresses)
        status, _, headers = self.ask(self.addresses[-1].removeprefix(f"http://127.0.0.1:{self.port}"), Cookie="")
        assert (status, headers["location"]) == (303, "/")
        until = time.monotonic() + 30
        while len(self.addresses) == before and time.monotonic() < until:
            time.sleep(0.01)
        return headers["set-cookie"].partition(";")[0]

    def stop(self):
        self.server.should_exit = True
        self.thread.join(timeout=30)
        self.socket.close()

    def ask(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named.setdefault("Cookie", getattr(self, "cookie", ""))
        try:
            connection.request(method, path, body, named)
            reply = connection.getresponse()
            return reply.status, reply.read(), reply.headers
        finally:
            connection.close()


@pytest.fixture(scope="module")
def served():
    """Serve indexes until the tests of a module are through."""
    sites = []

    def served(index, limits):
        sites.append(Site(index, limits))
        return sites[-1]

    yield served
    for site in sites:
        site.stop()


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "clips.index"
    entries = [entry("b", 2), entry("a", 1, label="cat", year="2005"), entry("c", 3, speaker="bob", year="10")]
    create(path, FACTS, COLUMNS, entries)
    return path


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "features.h5"
    content = synthetic(classes=3, train=40, valid=20, test=30, dimensions=(6, 8), difficulty=0.3)
    write_features(path, replace(content, columns={"speaker": tuple(f"s{n % 3}" for n in range(len(content.ids)))}))
    return path


@pytest.fixture(scope="module")
def timed():
    """Clips with stretches of sound."""
    return with_timeline()


@pytest.fixture
def timed_features(timed, tmp_path):
    """A feature file of `timed`, which a test may change."""
    write_features(tmp_path / "f.h5", timed)
    return tmp_path / "f.h5"


@pytest.fixture(scope="module")
def site(tmp_path_factory, served):
    from aadml.search.uploads import ClientLimits

    folder = tmp_path_factory.mktemp("site")
    write_features(folder / "f.h5", synthetic(classes=3, train=20, valid=5, test=10, dimensions=(6, 8), difficulty=0.3))
    (folder / "secret.txt").write_text("nobody reads this")
    return served(
        Index.build(folder / "f.h5", folder / "clips.index"), ClientLimits(bytes=200_000, seconds=1.5, connections=8)
    )


SETTINGS = {"network.hidden": [8], "training.batch": 20, "training.learning_rate": 0.01}


@pytest.fixture(scope="module", params=["aa-triplet", "recommended"])
def model(request, features, tmp_path_factory):
    config = {"config": "recommended"} if request.param == "recommended" else {"loss": request.param}
    return aadml.fit(features, epochs=2, settings=SETTINGS, runs=tmp_path_factory.mktemp("runs"), **config)
