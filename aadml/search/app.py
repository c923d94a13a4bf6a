"""Search page: a local ASGI app that reads one index and the media of its clips."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.kept_workers import keep_workers
from aadml.feature_extraction.media import REASONS
from aadml.reports.page import STYLE
from aadml.reports.previews import PreviewSource, make_previews
from aadml.search.access import HEADERS, Access, Guard
from aadml.search.encoders import ModelEncoder
from aadml.search.index import Index
from aadml.search.results import Found
from aadml.search.uploads import ClientLimits, uploaded

ALL = "all"
"""Value of `to` for words that search every modality."""

MOST_HITS, MOST_PREVIEWS = 100, 8


class Service:
    """Backend of the search page.

    Args:
        index: index that is searched.
        limits: limits of clients.
    """

    def __init__(self, index: Index, limits: ClientLimits) -> None:
        self._index, self._limits = index, limits
        self._answers, self._previews = asyncio.Semaphore(limits.answers), asyncio.Semaphore(1)

    async def facts(self, _: Request) -> Response:
        """Return the facts of the index that the page shows."""
        return await run_in_threadpool(self._facts)

    def _facts(self) -> Response:
        self._index.refresh()
        index, encoder = self._index, self._index.encoder
        kinds: dict[str, tuple[Modality, ...]] = {m: (m,) for m in ("audio", "visual")}
        kinds |= {"clip": ("audio", "visual"), "text": ("text",)}
        questions = [
            [kind, to]
            for kind, modalities in kinds.items()
            for to in index.modalities
            if any(encoder.can_query(m, to) for m in modalities)
        ]
        alone = not any(encoder.can_query(m, to) for m in MODALITIES for to in index.modalities if m != to)
        untrained = (
            "the index has no model, so each modality is searched by itself"
            if alone
            else "towers of a pretrained model, not trained here"
        )
        model = f"model {encoder.facts.label}" if isinstance(encoder, ModelEncoder) else untrained
        return _json({
            "name": index.path.name, "items": len(index), "modalities": list(index.modalities), "questions": questions,
            "vectors": index.counts(), "columns": index.columns(), "model": model, "most_bytes": self._limits.bytes,
            "example": "label = 'dog'" if index.has_labels() else "id LIKE '%rain%'",
        })  # fmt: skip

    async def search(self, request: Request) -> Response:
        """Search by an upload or by words."""
        kind, to, k, where = _query(request)
        if kind == "text":
            words = request.query_params.get("text", "")[:1000]
            return await self._found(lambda: self._index.search(text=words, to=to, k=k, where=where))
        if kind not in ("audio", "visual", "clip"):
            raise HTTPException(
                400, f"kind: {kind[:40]!r} is not a kind of query; choose from audio, visual, clip and text"
            )
        async with uploaded(request, self._limits) as path:
            query: Any = {kind: path}
            try:
                return await self._found(lambda: self._index.search(**query, to=to, k=k, where=where))
            except InputError as error:  # the client has another name for the file
                name = unquote(request.headers.get("x-name", "")) or "the file"
                raise type(error)(str(error).replace(str(path), name[:100])) from error

    async def like(self, request: Request) -> Response:
        """Search by a clip of the index."""
        _, _, k, where = _query(request)
        to = _modality(request.query_params.get("to"))
        number, modality = _number(request.query_params.get("number", "")), _modality(request.query_params.get("from"))
        return await self._found(lambda: self._index.like(number, modality, to=to, k=k, where=where))

    async def previews(self, request: Request) -> Response:
        """Return players and pictures of clips of the index, by their numbers."""
        numbers = [_number(number) for number in request.query_params.get("numbers", "").split(",")]
        if len(numbers) > MOST_PREVIEWS:
            raise HTTPException(400, f"numbers: {len(numbers)} clips in one request; request at most {MOST_PREVIEWS}")
        items = await run_in_threadpool(lambda: [self._index.item(number) for number in numbers])
        sources = [PreviewSource(paths.get("visual", ""), paths.get("audio", ""), i.segment) for i, paths in items]
        async with self._previews:
            previews = await run_in_threadpool(make_previews, sources)
        contents = [
            {"type": p.type, "media": p.media, "picture": p.picture, "words": REASONS.get(p.reason, "")}
            for p in previews
        ]
        return _json(contents)

    async def _found(self, search: Callable[[], Found]) -> Response:
        """Search in a thread, after waiting for a free place."""
        try:
            async with asyncio.timeout(self._limits.waiting):
                await self._answers.acquire()
        except TimeoutError:
            raise HTTPException(503, "too many queries at a time; try again") from None
        try:
            results = await run_in_threadpool(search)
        finally:
            self._answers.release()
        hits = [
            {**results.hit_to_json(rank), "number": hit.number, "has": sorted(hit.media)}
            for rank, hit in enumerate(results.hits, 1)
        ]
        return _json({**results.facts_to_json(), "uncalibrated": results.uncalibrated, "hits": hits})


def _query(request: Request) -> tuple[str, Modality | None, int, str | None]:
    """Return the kind of a query, the modality that is searched (None for all), k and the condition."""
    values = request.query_params
    k = _number(values.get("k", "12"))
    if not 1 <= k <= MOST_HITS:
        raise HTTPException(400, f"k is {k}; pass a whole number from 1 to {MOST_HITS}")
    kind, to = values.get("kind", ""), values.get("to")
    return kind, None if (kind, to) == ("text", ALL) else _modality(to), k, values.get("where") or None


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise HTTPException(400, f"{text[:40]!r} is not a whole number; pass digits only")
    return int(text)


def _modality(name: str | None) -> Modality:
    if name not in MODALITIES:
        raise HTTPException(400, f"{str(name)[:40]!r} is not a modality; choose from {', '.join(MODALITIES)}")
    return name


def _json(content: object, status: int = 200) -> Response:
    return JSONResponse(content, status, HEADERS)


def _refusal(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code, {**HEADERS, **(error.headers or {})})
    return _json({"error": " ".join(str(error).split()).replace("--", "")}, 400)


def _file(name: str, kind: str, before: str = "") -> Response:
    content = files("aadml.search").joinpath("page", name).read_text(encoding="utf-8")
    return Response(before + content, media_type=kind, headers=HEADERS)


def application(index: Index, access: Access, limits: ClientLimits) -> Starlette:
    """Build the app of an index.

    Args:
        index: index that is searched. The app only reads it, and closes it at the end.
        access: token of the printed address, and cookie.
        limits: limits of clients.
    """
    service = Service(index, limits)
    index.filter_seconds = limits.filter

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with keep_workers():
            yield
        index.close()

    return Starlette(
        routes=[
            Route("/", _file("page.html", "text/html"), methods=["GET"]),
            Route("/page.css", _file("page.css", "text/css", STYLE), methods=["GET"]),
            Route("/page.js", _file("page.js", "text/javascript"), methods=["GET"]),
            Route("/facts", service.facts),
            Route("/search", service.search, methods=["POST"]),
            Route("/like", service.like),
            Route("/previews", service.previews),
        ],
        middleware=[Middleware(Guard, access=access, limits=limits)],
        exception_handlers={HTTPException: _refusal, InputError: _refusal},
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
    """Serve the search page of an index on this machine until the process is interrupted.

    Each printed address opens the page in one browser; then the next address is printed. Other requests are refused.

    Args:
        index: the index file.
        port: port of the loopback interface.
        model: current path of the model of the index, if the model was moved.
        trust_code: import the code from outside aadml that the index or its model names as `module:name`.
        on_note: called with the address of the page, and with the next address when a browser has opened the page.

    Raises:
        InputError: the file is not an index, its model is missing, or the port is in use.
    """
    from aadml.search.server import run

    opened = Index(index, model=model, trust_code=trust_code)
    _ = opened.encoder  # raises the error of a missing model before the first query
    limits, access = ClientLimits(), Access(port, on_note or (lambda _: None))
    run(application(opened, access, limits), port, limits, access.renew)
