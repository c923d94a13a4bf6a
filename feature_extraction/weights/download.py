"""Fetch one published file: resumed where it stopped, checked before it gets its name, one process at a time."""

import fcntl
import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.progress_bar import Bar

_PIECE = 1 << 20  # bytes read at once
_FAILURES = (urllib.error.URLError, http.client.HTTPException, OSError)


def download(
    url: str, target: Path, *, check: Callable[[Path], None], attempts: int = 3, timeout: float = 30.0
) -> None:
    """Fetch `url` into `target`.

    What has arrived waits in `<target>.part`; a later call asks the server for the rest only, if the file there is
    still the same one. `target` appears by a rename, after `check`. A bar is drawn on a terminal.

    Args:
        url: http or https.
        target: the final name.
        check: raises InputError if the content is not what it should be; it is then discarded.
        attempts: how often a connection that breaks is taken up again.
        timeout: seconds a silent server is waited for.

    Raises:
        InputError: the server cannot be reached, has no such file, breaks off, or sends something else.
    """
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url}: only http and https addresses are fetched")
    part = target.with_name(f"{target.name}.part")
    with _locked(part) as file:
        if target.exists():
            return
        for attempt in range(1, attempts + 1):
            try:
                _fetch(url, file, part, timeout)
                break
            except _FAILURES as error:
                lasting = isinstance(error, urllib.error.HTTPError) and error.code < 500
                if isinstance(error, urllib.error.HTTPError):
                    error.close()
                if attempt == attempts or lasting:
                    raise InputError(_explanation(error, file.tell())) from error
        file.flush()
        os.fsync(file.fileno())
        try:
            check(part)
        except InputError:
            part.unlink()
            raise
        part.replace(target)


def digest(path: Path, kind: str) -> str:
    """Compute a file's checksum, of a kind `hashlib` knows."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


@contextmanager
def _locked(part: Path) -> Iterator[BinaryIO]:
    """Open the partial file for this process alone; others wait here, then find the work done."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        while True:
            file = part.open("ab")
            fcntl.flock(file, fcntl.LOCK_EX)
            there = _stat(part)
            if there is not None and os.path.samestat(os.fstat(file.fileno()), there):
                break
            file.close()  # it was renamed or discarded while this process waited
    except OSError as error:
        raise InputError(f"{part.parent}: cannot be written ({error.strerror or error})") from error
    with file:
        try:
            yield file
        finally:
            there = _stat(part)
            if there is None or there.st_size == 0:
                part.unlink(missing_ok=True)
                _validator(part).unlink(missing_ok=True)


def _stat(path: Path) -> os.stat_result | None:
    """Look at a file that another process may remove at any moment: once, not first whether it is there."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _fetch(url: str, file: BinaryIO, part: Path, timeout: float) -> None:
    """Append what is missing to the partial file; begin anew if the server cannot resume or has another file now."""
    start = file.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"User-Agent": "aadml"})
    validator = _validator(part)
    if start and validator.exists():
        request.add_header("Range", f"bytes={start}-")
        request.add_header("If-Range", validator.read_text(encoding="ascii"))
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        error.close()
        file.truncate(0)
        raise http.client.IncompleteRead(b"") from error
    with response:
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if not resumed:
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


def _explanation(error: BaseException, arrived: int) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, http.client.IncompleteRead | ConnectionError | TimeoutError) and arrived:
        return f"the connection broke after {arrived:,} bytes; the same command goes on from there"
    reason = getattr(error, "reason", error)
    return f"no connection: {getattr(reason, 'strerror', None) or reason or type(error).__name__}"
