"""Journal of requests: a line of JSON for each response, without the words and names of queries."""

import json
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

requests_log = logging.getLogger("aadml.requests")
"""Logger of the journal; level INFO."""


class Journal:
    """Middleware that logs the time, method, path, status and duration of each request.

    Args:
        app: application that answers the requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, and log its response."""
        status, begin = 500, time.monotonic()

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            if scope["type"] == "http":
                line = {
                    "time": time.time(), "method": scope["method"], "path": scope["path"], "status": status,
                    "seconds": round(time.monotonic() - begin, 4),
                }  # fmt: skip
                requests_log.info("%s", json.dumps(line))
