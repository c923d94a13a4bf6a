"""Reception of uploads in parts, into a temporary file, with limits on size and time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from aadml.feature_extraction.ground.media_suffixes import MEDIA_SUFFIXES, PICTURE_SUFFIXES


@dataclass(frozen=True)
class ClientLimits:
    """Limits on the requests of clients.

    Attributes:
        bytes: largest size of an upload, in bytes.
        seconds: longest duration of an upload, in seconds.
        answers: largest number of queries that are answered at a time.
        previews: largest number of previews that are built at a time.
        views: largest number of views that are computed at a time: pages of clips, maps, and checksums of media.
        uploads: largest number of uploads that are received or searched at a time.
        waiting: longest time that a request waits for its turn, in seconds.
        connections: largest number of connections that are open at a time.
        filter: seconds of processor time that the condition of a query may take; more in a large index.
    """

    bytes: int = 100_000_000
    seconds: float = 60.0
    answers: int = 2
    previews: int = 2
    views: int = 4
    uploads: int = 64
    waiting: float = 120.0
    connections: int = 256
    filter: float = 0.2


@asynccontextmanager
async def uploaded(request: Request, limits: ClientLimits) -> AsyncIterator[Path]:
    """Receive the body of a request into a file in a temporary folder, and yield the path of the file.

    Raises:
        HTTPException: the body is a form, empty, too large, too slow, or incomplete.
    """
    size = request.headers.get("content-length", "0")
    if not size.isascii() or not size.isdecimal() or int(size) > limits.bytes:
        await discard(request, limits.seconds)
        raise _too_large(limits)
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        await discard(request, limits.seconds)
        raise _closing(415, "the body is a form; send the file itself as the body (curl --data-binary @FILE)")
    suffix = Path(unquote(request.headers.get("x-name", ""))).suffix.lower()
    with TemporaryDirectory(prefix="aadml-question-") as folder:
        path = Path(folder) / f"question{suffix if suffix in MEDIA_SUFFIXES | PICTURE_SUFFIXES else ''}"
        try:
            async with asyncio.timeout(limits.seconds):
                await _receive(request, path, limits)
        except TimeoutError:
            raise _closing(
                408, f"the file took longer than {limits.seconds:g} s to arrive; use a smaller file"
            ) from None
        except ClientDisconnect:
            raise HTTPException(400, "the file arrived only in part; send the file again") from None
        yield path


def _closing(status: int, reason: str) -> HTTPException:
    return HTTPException(status, reason, {"Connection": "close"})


def _too_large(limits: ClientLimits) -> HTTPException:
    return _closing(413, f"the file is larger than {limits.bytes / 1e6:g} MB; use a smaller file")


async def discard(request: Request, seconds: float) -> None:
    """Read and discard a body for at most `seconds`, since many clients read no response before sending the whole body.

    A request with `Expect: 100-continue` sends no body before a response, so no body is read.
    """
    if request.headers.get("expect", "").lower() == "100-continue":
        return  # the client waits for a response before sending the body
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(seconds):
            async for _ in request.stream():
                pass


async def _receive(request: Request, path: Path, limits: ClientLimits) -> None:
    count = 0
    with path.open("wb") as file:
        async for part in request.stream():
            count += len(part)
            if count <= limits.bytes:  # the rest is read and discarded
                await asyncio.to_thread(file.write, part)
    if count > limits.bytes:
        raise _too_large(limits)
    if not count:
        raise HTTPException(400, "no file arrived; send a file as the body of the request")
