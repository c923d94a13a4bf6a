"""Uploads: taken in parts, counted, ended when they are too large or too slow, and gone when they were answered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request

from aadml.data.manifests.listing import MEDIA_SUFFIXES, PICTURE_SUFFIXES


@dataclass(frozen=True)
class ClientLimits:
    """What a client may ask of the server.

    Attributes:
        bytes: of one upload.
        seconds: that an upload may take.
        answers: questions that are worked on at a time.
        waiting: seconds that a question waits for its turn.
        connections: that are open at a time.
        filter: seconds of processor time that the condition of a question may take.
    """

    bytes: int = 100_000_000
    seconds: float = 60.0
    answers: int = 2
    waiting: float = 60.0
    connections: int = 64
    filter: float = 0.2


class RequestRefused(Exception):  # noqa: N818 - said to the client, not an error of the program
    """A request that is not answered, with its status and its reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@asynccontextmanager
async def uploaded(request: Request, limits: ClientLimits) -> AsyncIterator[Path]:
    """Receive the body of a request into a file of a folder of its own, never as a whole in memory.

    Raises:
        RequestRefused: it is empty, too large, too slow, or was broken off.
    """
    size = request.headers.get("content-length", "0")
    if not size.isascii() or not size.isdecimal() or int(size) > limits.bytes:
        await discard(request, limits.seconds)
        raise _too_large(limits)
    name = unquote(request.headers.get("x-name", ""))
    suffix = Path(name).suffix.lower()
    with TemporaryDirectory(prefix="aadml-question-") as folder:
        path = Path(folder) / f"question{suffix if suffix in MEDIA_SUFFIXES | PICTURE_SUFFIXES else ''}"
        try:
            async with asyncio.timeout(limits.seconds):
                await _receive(request, path, limits)
        except TimeoutError:
            raise RequestRefused(408, f"the file took longer than {limits.seconds:g} s to arrive") from None
        except ClientDisconnect:
            raise RequestRefused(400, "the file did not arrive as a whole") from None
        yield path


def _too_large(limits: ClientLimits) -> RequestRefused:
    return RequestRefused(413, f"the file is larger than {limits.bytes / 1e6:g} MB")


async def discard(request: Request, seconds: float) -> None:
    """Read the rest of a body and keep none of it: many clients listen only after they have sent everything."""
    if request.headers.get("expect", "").lower() == "100-continue":
        return  # such a client waits for a word before it sends
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(seconds):
            async for _ in request.stream():
                pass


async def _receive(request: Request, path: Path, limits: ClientLimits) -> None:
    count = 0
    with path.open("wb") as file:
        async for part in request.stream():
            count += len(part)
            if count <= limits.bytes:  # the rest is read and not kept
                await asyncio.to_thread(file.write, part)
    if count > limits.bytes:
        raise _too_large(limits)
    if not count:
        raise RequestRefused(400, "no file arrived")
