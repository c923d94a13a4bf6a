"""A local page to ask an index: a small ASGI app that reads one index and the media it names, and nothing else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.media import REASONS
from aadml.reports.page import STYLE
from aadml.reports.preview_cache import make_previews
from aadml.reports.previews import PreviewSource
from aadml.search.access import HEADERS, Access, Guard
from aadml.search.encoders import ModelEncoder
from aadml.search.index import Index
from aadml.search.results import Found
from aadml.search.uploads import ClientLimits, RequestRefused, uploaded

MOST_HITS, MOST_PREVIEWS = 100, 8

Handler = Callable[[Request], Awaitable[JsonObject | list[JsonObject]]]


class Service:
    """What is behind the page.

    Args:
        index: that is asked.
        limits: of clients.
    """

    def __init__(self, index: Index, limits: ClientLimits) -> None:
        self._index, self._limits = index, limits
        self._answers, self._previews = asyncio.Semaphore(limits.answers), asyncio.Semaphore(1)

    async def facts(self, _: Request) -> JsonObject:
        """Say what the page needs to know of the index."""
        return await run_in_threadpool(self._facts)

    def _facts(self) -> JsonObject:
        index, encoder = self._index, self._index.encoder
        kinds: list[tuple[str, tuple[Modality, ...]]] = [(m, (m,)) for m in MODALITIES]
        kinds.insert(2, ("clip", ("audio", "visual")))
        questions = [
            [kind, to]
            for kind, asking in kinds
            for to in index.modalities
            if any(encoder.can_query(m, to) for m in asking)
        ]
        alone = not any(encoder.can_query(m, to) for m in MODALITIES for to in index.modalities if m != to)
        untrained = "no model: each modality by itself" if alone else "towers of a pretrained model, not trained here"
        model = f"model {encoder.facts.label}" if isinstance(encoder, ModelEncoder) else untrained
        return {
            "name": index.path.name, "items": len(index), "modalities": list(index.modalities), "questions": questions,
            "vectors": index.counts(), "columns": index.columns(), "model": model, "most_bytes": self._limits.bytes,
            "example": "label = 'dog'" if index.has_labels() else "id LIKE '%rain%'",
        }  # fmt: skip

    async def search(self, request: Request) -> JsonObject:
        """Answer a question with an upload, or with words."""
        kind, to, k, where = _asked(request)
        if kind == "text":
            words = request.query_params.get("text", "")[:1000]
            return await self._answered(lambda: self._index.search(text=words, to=to, k=k, where=where))
        if kind not in ("audio", "visual", "clip"):
            raise RequestRefused(400, f"kind: {kind!r} given; audio, visual, clip or text are possible")
        async with uploaded(request, self._limits) as path:
            given: Any = {kind: path}
            try:
                return await self._answered(lambda: self._index.search(**given, to=to, k=k, where=where))
            except InputError as error:  # the client knows its file by another name
                name = unquote(request.headers.get("x-name", "")) or "the file"
                raise InputError(str(error).replace(str(path), name[:100])) from error

    async def like(self, request: Request) -> JsonObject:
        """Answer a question with a clip of the index."""
        _, to, k, where = _asked(request)
        number, modality = _number(request.query_params.get("number", "")), _modality(request.query_params.get("from"))
        return await self._answered(lambda: self._index.like(number, modality, to=to, k=k, where=where))

    async def previews(self, request: Request) -> list[JsonObject]:
        """Give players and pictures of clips of the index, by their numbers; nothing else has a number."""
        numbers = [_number(one) for one in request.query_params.get("numbers", "").split(",")]
        if len(numbers) > MOST_PREVIEWS:
            raise RequestRefused(400, f"numbers: {len(numbers)} given; at most {MOST_PREVIEWS} are possible")
        media = [self._index.item(number)[1] for number in numbers]
        sources = [PreviewSource(one.get("visual", ""), one.get("audio", "")) for one in media]
        async with self._previews:
            made = await run_in_threadpool(make_previews, sources)
        return [
            {"type": one.type, "media": one.media, "picture": one.picture, "words": REASONS.get(one.reason, "")}
            for one in made
        ]

    async def _answered(self, work: Callable[[], Found]) -> JsonObject:
        """Search in a thread, when it is this question's turn."""
        try:
            async with asyncio.timeout(self._limits.waiting):
                await self._answers.acquire()
        except TimeoutError:
            raise RequestRefused(503, "too many questions at a time; try again") from None
        try:
            found = await run_in_threadpool(work)
        finally:
            self._answers.release()
        return _shown(found)


def _shown(found: Found) -> JsonObject:
    """Give what the page shows of an answer: no path."""
    hits: list[JsonObject] = [
        {**found.hit_to_json(rank), "number": hit.number, "has": sorted(hit.media)}
        for rank, hit in enumerate(found.hits, 1)
    ]
    return {**found.facts_to_json(), "hits": hits}


def _asked(request: Request) -> tuple[str, Modality, int, str | None]:
    values = request.query_params
    k = _number(values.get("k", "12"))
    if not 1 <= k <= MOST_HITS:
        raise RequestRefused(400, f"k: {k} given; 1 to {MOST_HITS} are possible")
    return values.get("kind", ""), _modality(values.get("to")), k, values.get("where") or None


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise RequestRefused(400, f"{text[:40]!r}: a number is wanted")
    return int(text)


def _modality(name: str | None) -> Modality:
    if name not in MODALITIES:
        raise RequestRefused(400, f"{str(name)[:40]!r} is no modality; there are {', '.join(MODALITIES)}")
    return name


def _answering(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Turn what a handler gives, or why it gives nothing, into a response."""

    async def answer(request: Request) -> Response:
        try:
            return JSONResponse(await handler(request), headers=HEADERS)
        except RequestRefused as refused:
            closing = {"Connection": "close"} if refused.status in (408, 413) else {}
            return JSONResponse({"error": str(refused)}, refused.status, HEADERS | closing)
        except InputError as error:
            said = " ".join(str(error).split()).replace("--", "")
            return JSONResponse({"error": said}, 400, HEADERS)

    return answer


def _file(name: str, kind: str, before: str = "") -> Callable[[Request], Awaitable[Response]]:
    content = before + files("aadml.search").joinpath("page", name).read_text(encoding="utf-8")

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind, headers=HEADERS)

    return answer


def application(index: Index, access: Access, limits: ClientLimits) -> Starlette:
    """Build the app of an index.

    Args:
        index: that is searched; it is only read, and closed when the app ends.
        access: the token of the printed address, and the cookie.
        limits: of clients.
    """
    service = Service(index, limits)
    index.filter_seconds = limits.filter

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        index.close()

    return Starlette(
        routes=[
            Route("/", _file("page.html", "text/html")),
            Route("/page.css", _file("page.css", "text/css", STYLE)),
            Route("/page.js", _file("page.js", "text/javascript")),
            Route("/facts", _answering(service.facts)),
            Route("/search", _answering(service.search), methods=["POST"]),
            Route("/like", _answering(service.like)),
            Route("/previews", _answering(service.previews)),
        ],
        middleware=[Middleware(Guard, access=access, limits=limits)],
        lifespan=lifespan,
    )


def serve(
    index: str | Path,
    *,
    port: int = 8765,
    model: str | Path | None = None,
    trust_code: bool = False,
    on_note: Callable[[str], None] | None = None,
) -> None:
    """Serve the page of an index on this machine alone, until it is interrupted.

    Data are answered only to a browser that opened the address that was printed last. An address opens the page in one
    browser, and the next address is printed then.

    Args:
        index: the file.
        port: of the loopback interface.
        model: where the model of the index lies now, if it was moved.
        trust_code: import the code from outside aadml that the index or its model names as `module:name`.
        on_note: called with the page's address when it can be opened, and with the next address when a browser has
            opened it.

    Raises:
        InputError: no index, a model that is not there, or a port that is taken.
    """
    from aadml.search.server import run

    opened = Index(index, model=model, trust_code=trust_code)
    _ = opened.encoder  # a model that is not there is better known now
    limits, access = ClientLimits(), Access(port, on_note or (lambda _: None))
    run(application(opened, access, limits), port, limits, access.renew)
