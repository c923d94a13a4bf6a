"""A server of an index in a thread of its own."""

import asyncio
import http.client
import threading
import time

import pytest


class Site:
    """A server in a thread of its own, and clients that speak to it."""

    def __init__(self, index, limits):
        import uvicorn

        from aadml.search.server import Impatient, listening
        from aadml.search.serving import application

        self.socket = listening(0)
        self.port = self.socket.getsockname()[1]
        config = uvicorn.Config(
            application(index, self.port, limits), http=Impatient, ws="none", log_level="critical",
            limit_concurrency=limits.connections, timeout_graceful_shutdown=1,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve([self.socket])), daemon=True)
        self.thread.start()
        until = time.monotonic() + 30
        while not self.server.started and time.monotonic() < until:
            time.sleep(0.02)
        assert self.server.started

    def stop(self):
        self.server.should_exit = True
        self.thread.join(timeout=30)
        self.socket.close()

    def ask(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
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
