"""Download of a published file by one process at a time: resumable, and verified before the final rename."""

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.locks import locked
from aadml.feature_extraction.ground.progress_bar import Bar

_ATTEMPTS = 3  # connections that are tried before a download fails
_TIMEOUT = 30.0  # seconds without a byte from the server
_PIECE = 1 << 20  # bytes read at once


def download(url: str, target: Path, *, check: Callable[[Path], None]) -> None:
    """Download `url` to `target`.

    Received bytes are stored in `<target>.part`. A later call requests only the rest, if the server still has the same
    file. `target` appears by a rename, after `check`. A progress bar is drawn on a terminal.

    Args:
        url: address of the file, http or https.
        target: final path.
        check: raises InputError for wrong content, which is then deleted.

    Raises:
        InputError: the server cannot be reached, does not have the file, closes the connection, or sends other content.
    """
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url}: is not an http or https address; pass an address of either kind")
    part = target.with_name(f"{target.name}.part")
    with _locked(target):
        if target.exists():
            return
        with part.open("ab") as file:
            try:
                _fetch(url, file, part)
            finally:
                if not file.seek(0, os.SEEK_END):
                    part.unlink()
                    _validator(part).unlink(missing_ok=True)
            file.flush()
            os.fsync(file.fileno())
        _validator(part).unlink(missing_ok=True)
        try:
            check(part)
        except InputError:
            part.unlink()
            raise
        part.replace(target)


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Lock a download; other processes and threads wait."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = target.with_name(f".{target.name}.lock").open("ab")
    except OSError as error:
        raise InputError(
            f"{target.parent}: cannot be written ({error.strerror or error}); choose another place"
        ) from error
    lock_file = target.with_name(f".{target.name}.lock.host")
    with lock, locked(lock.fileno(), lock_file, f"{target}: another process downloads it", wait=True):
        yield


def _fetch(url: str, file: BinaryIO, part: Path) -> None:
    """Append the missing bytes; a broken connection is retried, but a refusal of the server is final."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _fetch_once(url, file, part)
        except (http.client.HTTPException, OSError) as error:  # URLError is an OSError
            final = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                if error.code == 416:  # no bytes are left to send, but the content was never verified
                    file.truncate(0)
                    final = False
            if attempt == _ATTEMPTS or final:
                raise InputError(_explanation(error, file.seek(0, os.SEEK_END))) from error
    return None


def _fetch_once(url: str, file: BinaryIO, part: Path) -> None:
    """Append the missing bytes; restart if the server cannot resume or its file has changed."""
    start = file.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"User-Agent": "aadml"})
    validator = _validator(part)
    if start and validator.exists():
        request.add_header("Range", f"bytes={start}-")
        request.add_header("If-Range", validator.read_text(encoding="ascii"))
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
        if response.status != 206 or not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            file.truncate(0)
            start = 0
            validator.unlink(missing_ok=True)
        mark = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
        if mark and not mark.startswith("W/"):
            validator.write_text(mark, encoding="ascii")
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        with Bar(total, "B", part.stem, done=start, scaled=True) as bar:
            while piece := response.read(_PIECE):
                file.write(piece)
                bar.show(bar.done + len(piece))
        if total is not None and file.tell() < total:
            raise http.client.IncompleteRead(b"", total - file.tell())


def _validator(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def _explanation(error: BaseException, received: int) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, http.client.IncompleteRead | ConnectionError | TimeoutError) and received:
        return f"the connection broke after {received:,} bytes; run the same command again to resume"
    reason = getattr(error, "reason", error)
    return f"connection failed: {getattr(reason, 'strerror', None) or reason or type(error).__name__}"
