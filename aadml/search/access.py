"""Access control of a served index.

Only browsers that opened a printed address, and programs with the token of the team, may read the index.
"""

import re
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from aadml.feature_extraction.ground.errors import InputError
from aadml.search.uploads import ClientLimits, discard

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PAGE_FILES = {
    "/": "page.html", "/page.css": "page.css", "/page.js": "page.js", "/cards.js": "cards.js",
    "/browse.js": "browse.js", "/docs": "docs.html", "/docs.js": "docs.js", "/openapi.json": "openapi.json",
}  # fmt: skip
"""Path -> file of the page."""
PAGE = frozenset({*PAGE_FILES, "/health"})
"""Paths that contain no data of the index; every other path requires the cookie or the bearer token."""
_TOKEN, _ROOT = re.compile(r"[\w-]{32,200}", re.ASCII), re.compile(r"(/[\w.-]+)+", re.ASCII)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine, as in the addresses of browsers."""
UNKNOWN_BROWSER = (
    "this client has neither the cookie nor the token of the server; open the address that `aadml serve` printed last"
)


class Access:
    """Tokens of printed addresses, and the cookie that a browser receives for a token.

    Without a token of the team, every token is exchanged once, and a new token follows each exchange. The latest
    printed address therefore always admits one more browser. A token of the team admits any browser, and programs send
    the token as `Authorization: Bearer TOKEN`. The cookie is valid until the server ends.

    Args:
        port: port of the server. The name of the cookie contains the port, because browsers send cookies to every port
            of a host.
        on_address: called with the address that contains the newest token.
        host: name of the server in printed addresses.
        root: path below which a reverse proxy serves the page, such as "/clips"; "" for none.
        team: token of the team; "" for tokens that are exchanged once.
    """

    def __init__(
        self, port: int, on_address: Callable[[str], None], *, host: str = "127.0.0.1", root: str = "", team: str = ""
    ) -> None:
        self.port, self.root, self.team = port, root, team
        self._on_address, self._host = on_address, host
        self._cookie, self._secret = f"aadml-{port}", secrets.token_urlsafe(32)
        self._token: str | None = None

    def renew(self) -> None:
        """Set the current token, and pass the address with the token to `on_address`.

        The current token is the token of the team, or else a new random token.
        """
        self._token = self.team or secrets.token_urlsafe(32)
        self._on_address(f"http://{self._host}:{self.port}{self.root}/?token={self._token}")

    def exchange(self, token: str, *, secure: bool) -> Response:
        """Return a redirect to the page. If the token is current, the response sets the cookie.

        Without a token of the team, a new token then replaces the current token.

        Args:
            token: token of the request.
            secure: whether browsers send the cookie only over HTTPS.
        """
        response = RedirectResponse(f"{self.root}/", 303, HEADERS)
        if self._token is not None and _equal(token, self._token):
            path = f"{self.root}/"  # other applications behind the same proxy do not receive the cookie
            response.set_cookie(self._cookie, self._secret, path=path, httponly=True, samesite="strict", secure=secure)
            if not self.team:
                self._token = None
                response.background = BackgroundTask(self.renew)
        return response

    def known(self, request: Request) -> bool:
        """Return whether a request has the cookie or the bearer token."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        is_bearer = bool(self.team) and kind.lower() == "bearer" and _equal(token, self.team)
        return is_bearer or _equal(request.cookies.get(self._cookie, ""), self._secret)


class Guard:
    """Middleware that refuses requests to a wrong host or from another origin.

    A request for data is also refused if the request comes from another page or has neither cookie nor token.

    Args:
        app: application that answers the accepted requests.
        access: tokens and cookie.
        limits: limits of clients.
    """

    def __init__(self, app: ASGIApp, access: Access, limits: ClientLimits) -> None:
        self._app, self._access, self._limits = app, access, limits
        bare = LOOPBACK if access.port == 80 else ()  # browsers omit the default port
        self._hosts = frozenset({f"{name}:{access.port}" for name in LOOPBACK} | {*bare})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request to the application, unless the request is refused or exchanges a token."""
        app: Callable[[Scope, Receive, Send], Awaitable[None]] = self._app
        if scope["type"] == "http":
            scope = {**scope, "path": self._path(scope["path"])}
            app = await self._refused(Request(scope, receive)) or app
        await app(scope, receive, send)

    def _path(self, path: str) -> str:
        """Return a path without the prefix of the reverse proxy, which some proxies remove themselves."""
        root = self._access.root
        return path.removeprefix(root) if path.startswith(f"{root}/") else path

    def _is_addressed(self, request: Request) -> bool:
        """Return whether a request names this server as its host, and this server or nothing as its origin.

        Without a token of the team, only loopback names are accepted. With such a token, any host name is accepted.
        """
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if self._access.team:
            return bool(host) and (origin is None or origin.partition("://")[2] == host)
        return host in self._hosts and (origin is None or origin.removeprefix("http://") in self._hosts)

    async def _refused(self, request: Request) -> Response | None:
        """Return the response that refuses a request or exchanges its token; None for a request to forward."""
        site = request.headers.get("sec-fetch-site", "none")
        if not self._is_addressed(request):
            reason = "this host or origin is not served; open the address that `aadml serve` printed\n"
            return PlainTextResponse(reason, 403, HEADERS)
        if request.scope["path"] in PAGE:  # the path that is routed; a URL is built from the header Host
            exchanged = request.method == "GET" and "token" in request.query_params
            secure = request.headers.get("x-forwarded-proto") == "https"
            return self._access.exchange(request.query_params["token"], secure=secure) if exchanged else None
        if site not in ("same-origin", "none"):
            return PlainTextResponse("other pages cannot read the index; open the page of the index\n", 403, HEADERS)
        if not self._access.known(request):
            await discard(request, self._limits.seconds)
            return JSONResponse({"error": UNKNOWN_BROWSER}, 403, HEADERS)
        return None


def in_brackets(host: str) -> str:
    """Return a host as part of a URL: an IPv6 address in brackets, other hosts unchanged."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def team_token(host: str, path: str | Path | None) -> str:
    """Read the token of a team from a file; return "" if `path` is None.

    Args:
        host: address to listen on. A host other than 127.0.0.1, localhost or ::1 requires a token.
        path: path of the file.

    Raises:
        InputError: a file that cannot be read, an invalid token, or no token for a host that requires a token.
    """
    if path is None:
        if in_brackets(host) not in LOOPBACK:
            raise InputError(
                f"--host {host}: a host other than {', '.join(LOOPBACK)} requires a token; "
                "pass --token-file FILE as well"
            )
        return ""
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file {path} cannot be read ({error}); pass a readable text file in UTF-8") from error
    if not _TOKEN.fullmatch(token):
        raise InputError(
            f"--token-file {path} does not contain one token of 32 to 200 letters, digits, - and _; "
            "create a token with `openssl rand -hex 32`"
        )
    return token


def checked_root(path: str) -> str:
    """Return the path prefix of the page behind a reverse proxy, without a slash at the end.

    Raises:
        InputError: the path does not begin with a slash, has an empty part, or contains characters besides letters,
            digits, - . _ and /.
    """
    root = path.rstrip("/")
    if root and not _ROOT.fullmatch(root):
        raise InputError(
            f"--root-path {path[:80]!r} does not consist of slashes, each followed by letters, digits, - . or _; "
            "pass a path such as /clips"
        )
    return root


def _equal(value: str, secret: str) -> bool:
    return secrets.compare_digest(value.encode("utf-8", "replace"), secret.encode())
