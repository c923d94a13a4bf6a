"""Download of a published file, with verification of its content. An interrupted download is continued."""

import errno
import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from glob import escape
from pathlib import Path
from typing import Any

from aadml.feature_extraction.ground.atomic import flush_to_disk
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.locks import locked
from aadml.feature_extraction.ground.progress_bar import Bar

_TIMEOUT = 30.0  # seconds without a byte from the server
_PIECE = 1 << 20  # bytes read at once
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


def download(url: str, target: Path, *, check: Callable[[Path], None]) -> None:
    """Download `url` to `target`, with a progress bar on a terminal.

    If the server states an ETag or a date, an interrupted download leaves a partial file beside `target`. The next call
    continues the partial file unless the ETag, the date or the size has changed. Processes that need files of the same
    folder wait for each other.

    Args:
        url: address of the file, http or https.
        target: final path; an existing file is kept.
        check: function that raises InputError for wrong content. The content is then deleted.

    Raises:
        InputError: an address other than http or https, a failed download, wrong content, or a file that cannot be
            written.
    """
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url} is not an http or https address; pass an address that begins with http:// or https://")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(target.parent, os.O_RDONLY)
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        with locked(
            folder, target.with_name(".lock"), f"{target}: another process is downloading this file", wait=True
        ):
            if not target.is_file():
                _download(url, target, check)
    finally:
        os.close(folder)


def _download(url: str, target: Path, check: Callable[[Path], None]) -> None:
    try:
        part = _received(url, target)
        try:
            check(part)
        except InputError:
            part.unlink()
            raise
        flush_to_disk(part)
        part.replace(target)
        for leftover in target.parent.glob(f".{escape(target.name)}.*.part"):  # of earlier versions of the file
            leftover.unlink()
    except urllib.error.HTTPError as error:
        with error:
            raise InputError(
                f"{url}: the server did not send the file (status {error.code}, {error.reason}); "
                "check the address, or try again later"
            ) from error
    except http.client.IncompleteRead as error:
        rest = f"{error.expected:,} bytes before the end" if error.expected else "before the end"
        raise InputError(f"{url}: the connection broke {rest}; run the same command again") from error
    except (http.client.HTTPException, OSError) as error:  # URLError is an OSError
        if isinstance(error, OSError) and (error.filename or error.errno in _OF_THE_DISK):
            raise _unwritable(target, error) from error
        reason = getattr(error, "reason", error)
        detail = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
        raise InputError(f"{url}: the connection failed ({detail}); check the network") from error


def _received(url: str, target: Path) -> Path:
    """Download a file, or the missing rest of a partial download; return the path of the complete content."""
    with _opened(url) as response:
        length = int(response.headers.get("Content-Length") or 0)
        validator = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
        version = hashlib.sha256(f"{validator} {length}".encode()).hexdigest()[:8]
        part = target.with_name(f".{target.name}.{version}.part")
        done = part.stat().st_size if part.exists() and validator else 0
        if not 0 < done <= length:
            try:
                _write(response, part, 0, length)
            except BaseException:
                if not validator:  # cannot be continued
                    part.unlink(missing_ok=True)
                raise
            return part
    if done < length:
        with _opened(url, done) as response:
            continues = response.status == 206
            _write(response, part, done if continues else 0, length)
    return part


def _opened(url: str, start: int = 0) -> Any:
    """Open an address, from byte `start` on; a server without support for ranges sends the whole file."""
    headers = {"User-Agent": "aadml"} | ({"Range": f"bytes={start}-"} if start else {})
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT)


def _write(response: Any, part: Path, start: int, length: int) -> None:
    """Write a response after the first `start` bytes of `part`; `length` is the size of the file, or 0 if unknown."""
    with part.open("ab" if start else "wb") as file, Bar(length or None, "B", part.name[1:-14], scaled=True) as bar:
        while piece := response.read(_PIECE):
            file.write(piece)
            bar.show(file.tell())
        if file.tell() < length:
            raise http.client.IncompleteRead(b"", length - file.tell())


def _unwritable(target: Path, error: OSError) -> InputError:
    return InputError(
        f"{target} cannot be written ({error.strerror}); free some space, or set AADML_CACHE to another folder"
    )
