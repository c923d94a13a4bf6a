"""The server of the page: uvicorn on the loopback interface, impatient with clients that never finish a request."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from aadml.feature_extraction.ground.errors import InputError
from aadml.search.uploads import ClientLimits

HEADER_SECONDS = 10.0
"""From the opening of a connection, or the first byte of a further request, until its head has arrived."""


class Impatient(H11Protocol):
    """HTTP/1.1, closing connections on which no whole head of a request arrives in time."""

    _ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes; a whole head ends the waiting, a part of one begins it."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop()
        elif self._ending is None and (self.cycle is None or self.cycle.response_complete):
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._ending = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None

    def _give_up(self) -> None:
        self._ending = None
        if not self.transport.is_closing():
            self.transport.abort()


def listening(port: int) -> socket.socket:
    """Open the port of the loopback interface.

    Raises:
        InputError: it is taken, or may not be opened.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(("127.0.0.1", port))
    except OSError as error:
        opened.close()
        raise InputError(f"--port {port}: cannot be opened ({error.strerror}); choose another one") from error
    return opened


def run(app: ASGIApp, port: int, limits: ClientLimits, begun: Callable[[], None]) -> None:
    """Serve an app until the process is interrupted."""
    config = uvicorn.Config(
        app, http=Impatient, ws="none", log_level="error", access_log=False, server_header=False,
        limit_concurrency=limits.connections, timeout_keep_alive=5, timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=16_384,
    )  # fmt: skip
    with listening(port) as opened:
        begun()
        uvicorn.Server(config).run([opened])
