"""Server of the search page: uvicorn, with a time limit for the head of a request."""

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
"""Seconds from the opening of a connection, or the first byte of a further request, to the end of the request head."""


class Impatient(H11Protocol):
    """HTTP/1.1 protocol that closes a connection if the head of a request does not arrive in time."""

    _ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the time limit of the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop the time limit at the end of a head, and start it again at the next head."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop()
        elif self._ending is None and (self.cycle is None or self.cycle.response_complete):
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limit."""
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


def listening(port: int, host: str = "127.0.0.1") -> socket.socket:
    """Return a socket that listens on a port.

    Raises:
        InputError: the port cannot be opened at the host.
    """
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host.strip("[]"), port))
        opened.listen()
    except (OSError, OverflowError) as error:
        opened.close()
        reason = error.strerror if isinstance(error, OSError) else "a port is a number from 0 to 65535"
        raise InputError(
            f"--host {host} --port {port}: this address cannot be opened ({reason}); choose another address or port"
        ) from error
    return opened


def run(app: ASGIApp, host: str, port: int, limits: ClientLimits, on_start: Callable[[], None]) -> None:
    """Serve an app until the process is interrupted.

    Args:
        app: app to serve.
        host: address to listen on.
        port: port to listen on.
        limits: limits of clients.
        on_start: called when the port accepts connections.

    Raises:
        InputError: the port cannot be opened at the host.
    """
    config = uvicorn.Config(
        app, http=Impatient, ws="none", log_level="error", access_log=False, server_header=False,
        limit_concurrency=limits.connections, timeout_keep_alive=5, timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=16_384,
    )  # fmt: skip
    with listening(port, host) as opened:
        on_start()
        uvicorn.Server(config).run([opened])
