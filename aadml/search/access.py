"""Access control of a served index: only its own pages may read it, in browsers that opened a printed address."""

import secrets
from collections.abc import Awaitable, Callable

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from aadml.search.uploads import ClientLimits, discard

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PAGE = frozenset({"/", "/page.css", "/page.js"})
"""Paths that contain no data of the index; every other path requires the cookie."""
UNKNOWN_BROWSER = "this browser has not opened the address that `aadml serve` printed last; open that address"


class Access:
    """Token of the printed address, and the cookie that a browser receives in exchange for the token.

    Every token is exchanged once. A new token follows each exchange, so the latest printed address always admits one
    more browser. The cookie is valid until the server ends.

    Args:
        port: port of the server. The name of the cookie contains it, because browsers send cookies to every port of a
            host.
        on_address: called with the address that contains the newest token.
    """

    def __init__(self, port: int, on_address: Callable[[str], None]) -> None:
        self.port = port
        self._on_address = on_address
        self._cookie, self._secret = f"aadml-{port}", secrets.token_urlsafe(32)
        self._token: str | None = None

    def renew(self) -> None:
        """Create a token and announce the address that contains it."""
        self._token = secrets.token_urlsafe(32)
        self._on_address(f"http://127.0.0.1:{self.port}/?token={self._token}")

    def exchange(self, token: str) -> Response:
        """Redirect to the address without a token; set the cookie if the token is current."""
        response = RedirectResponse("/", 303, HEADERS)
        if self._token is not None and _equal(token, self._token):
            self._token = None
            response.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict")
            response.background = BackgroundTask(self.renew)
        return response

    def known(self, request: Request) -> bool:
        """Return whether a request has the cookie."""
        return _equal(request.cookies.get(self._cookie, ""), self._secret)


class Guard:
    """Middleware that refuses requests to other hosts, from other pages, and for data without the cookie.

    Args:
        app: application that answers the accepted requests.
        access: token and cookie.
        limits: limits of clients.
    """

    def __init__(self, app: ASGIApp, access: Access, limits: ClientLimits) -> None:
        self._app, self._access, self._limits = app, access, limits
        self._hosts = frozenset(f"{name}:{access.port}" for name in ("127.0.0.1", "localhost", "[::1]"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on to the application."""
        app: Callable[[Scope, Receive, Send], Awaitable[None]] = self._app
        if scope["type"] == "http":
            app = await self._refused(Request(scope, receive)) or app
        await app(scope, receive, send)

    async def _refused(self, request: Request) -> Response | None:
        """Return the response to a request that is not passed on."""
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "none")
        addressed = request.headers.get("host", "") in self._hosts
        if not addressed or (origin is not None and origin.removeprefix("http://") not in self._hosts):
            return PlainTextResponse("this page can only be opened on this machine\n", 403, HEADERS)
        if request.url.path in PAGE:
            exchanged = request.method == "GET" and "token" in request.query_params
            return self._access.exchange(request.query_params["token"]) if exchanged else None
        if site not in ("same-origin", "none"):
            return PlainTextResponse("other pages cannot read the index\n", 403, HEADERS)
        if not self._access.known(request):
            await discard(request, self._limits.seconds)
            return JSONResponse({"error": UNKNOWN_BROWSER}, 403, HEADERS)
        return None


def _equal(value: str, secret: str) -> bool:
    return secrets.compare_digest(value.encode("utf-8", "replace"), secret.encode())
