"""Download of a published file, verified before it appears under its name."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from aadml.feature_extraction.ground.atomic import atomic_path
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.progress_bar import Bar

_TIMEOUT = 30.0  # seconds without a byte from the server
_PIECE = 1 << 20  # bytes read at once


def download(url: str, target: Path, *, check: Callable[[Path], None]) -> None:
    """Download `url` to `target`, with a progress bar on a terminal.

    Args:
        url: address of the file, http or https.
        target: final path.
        check: function that raises InputError for wrong content; the content is then deleted.

    Raises:
        InputError: the server cannot be reached, does not have the file, closes the connection, or sends other content.
    """
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url}: is not an http or https address; pass an address of either kind")
    with atomic_path(target) as temporary:
        try:
            _fetch(url, temporary, target.name)
        except (http.client.HTTPException, OSError) as error:  # URLError is an OSError
            raise InputError(_explanation(error)) from error
        check(temporary)


def _fetch(url: str, path: Path, name: str) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "aadml"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response, path.open("wb") as file:
        length = int(response.headers.get("Content-Length") or 0)
        with Bar(length or None, "B", name, scaled=True) as bar:
            while piece := response.read(_PIECE):
                file.write(piece)
                bar.show(file.tell())
        if file.tell() < length:
            raise http.client.IncompleteRead(b"", length - file.tell())


def _explanation(error: BaseException) -> str:
    if isinstance(error, urllib.error.HTTPError):
        with error:
            return f"the server returned {error.code} {error.reason}"
    if isinstance(error, http.client.IncompleteRead):
        return f"the connection broke {error.expected:,} bytes before the end; run the same command again"
    reason = getattr(error, "reason", error)
    return f"the connection failed: {getattr(reason, 'strerror', None) or reason or type(error).__name__}"
