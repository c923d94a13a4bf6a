"""Search page and its JSON API: an ASGI app that reads one index and the media of its clips."""

import asyncio
import base64
import contextlib
import socket
import tempfile
import wave
from collections.abc import AsyncIterator, Callable, Sequence
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
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.kept_workers import keep_workers
from aadml.feature_extraction.ground.media_suffixes import PICTURE_SUFFIXES
from aadml.feature_extraction.media.inputs import REASONS
from aadml.reports.page import STYLE
from aadml.reports.previews import PreviewSource, key_of, make_previews
from aadml.search.access import HEADERS, PAGE_FILES, Access, Guard, checked_root, in_brackets, team_token
from aadml.search.encoders import ModelEncoder
from aadml.search.index import Index
from aadml.search.journal import Journal
from aadml.search.judgments_file import JudgmentsFile
from aadml.search.results import Found, times_of
from aadml.search.store import Item
from aadml.search.uploads import ClientLimits, uploaded

ALL = "all"
"""Value of `to` for a query by words in every modality."""

_EVERYWHERE = ("0.0.0.0", "::", "[::]")
MOST_HITS, MOST_CLIPS = 100, 100
"""Largest number of hits of a query, and of clips of a page."""


class Service:
    """Backend of the search page. Starlette runs the methods without `async` in threads.

    The methods answer requests. An invalid request raises HTTPException or InputError.

    Args:
        index: index that is searched.
        limits: limits of clients.
    """

    def __init__(self, index: Index, limits: ClientLimits) -> None:
        self._index, self._limits = index, limits
        self._answers, self._previews = asyncio.Semaphore(limits.answers), asyncio.Semaphore(limits.previews)
        self._uploads, self._views = asyncio.Semaphore(limits.uploads), asyncio.Semaphore(limits.views)
        self._judgments = JudgmentsFile(index.path.with_name(f"{index.path.name}.judgments.csv"))

    async def health(self, _: Request) -> Response:
        """Report that the server is running."""
        return _json({"status": "ok"})

    def facts(self, _: Request) -> Response:
        """Return facts for the page, such as index content, kinds of query and the size limit of uploads."""
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
        model = "the index has no model, so each modality is searched by itself"
        if isinstance(encoder, ModelEncoder):
            model = f"model {encoder.facts.label}"
        elif any(encoder.can_query(m, to) for m in MODALITIES for to in index.modalities if m != to):
            model = "towers of a pretrained model, not trained here"
        return _json({
            "name": index.path.name, "items": len(index), "modalities": list(index.modalities), "questions": questions,
            "vectors": index.counts(), "columns": index.columns(), "model": model, "most_bytes": self._limits.bytes,
            "judgments": self._judgments.path.name,
        })  # fmt: skip

    async def clips(self, request: Request) -> Response:
        """Return a page of the clips that meet a condition, with example clips and counts of the values of columns."""
        query = request.query_params
        offset, limit = _number(query.get("offset", "0")), _number(query.get("limit", "24"))
        if limit > MOST_CLIPS:
            raise HTTPException(400, f"limit is {limit}; pass a whole number up to {MOST_CLIPS}")
        where = query.get("where") or None
        async with self._turn(self._views):
            browsed = await run_in_threadpool(lambda: self._index.browse(where=where, offset=offset, limit=limit))
            shown = await run_in_threadpool(self._shown, (*browsed.examples, *browsed.clips))
        examples = len(browsed.examples)
        counts = {
            column: {"values": list(values.items()), "of": browsed.classes if column == "label" else len(values)}
            for column, values in browsed.counts.items()
        }
        return _json({
            "total": browsed.total, "counts": counts, "examples": shown[:examples], "clips": shown[examples:],
        })  # fmt: skip

    async def map(self, request: Request) -> Response:
        """Return the 2-D map of a modality: class names, and points [number, x, y, class index].

        `number` is the number of an item. x and y are integers from 0 to 1000.
        """
        modality = _modality(request.query_params.get("of"))
        async with self._turn(self._views):
            layout = await run_in_threadpool(self._index.layout, modality)
        classes = {name: place for place, name in enumerate(sorted({*layout.labels}))}
        places = (1000 * layout.places).round().astype(int).tolist()
        rows = zip(layout.numbers.tolist(), places, layout.labels, strict=True)
        points = [[number, *place, classes[name]] for number, place, name in rows]
        return _json({"classes": list(classes), "points": points})

    def clip(self, request: Request) -> Response:
        """Return a clip of the index, by its id or its number."""
        item, _, number = self._index.item(_chosen(request))
        return _json(self._shown([(number, item)])[0])

    async def search(self, request: Request) -> Response:
        """Return the hits of a query by an upload or by words."""
        kind, to, k, where = _query(request)
        if kind == "text":
            words = request.query_params.get("text", "")[:1000]
            return await self._found(lambda: self._index.search(text=words, to=to, k=k, where=where))
        if kind not in ("audio", "visual", "clip"):
            raise HTTPException(
                400, f"kind: {kind[:40]!r} is not a kind of query; choose from audio, visual, clip and text"
            )
        async with self._turn(self._uploads), uploaded(request, self._limits) as path:
            query: Any = {kind: path}
            try:
                return await self._found(lambda: self._index.search(**query, to=to, k=k, where=where))
            except InputError as error:  # the client has another name for the file
                name = unquote(request.headers.get("x-name", "")) or "the file"
                raise type(error)(str(error).replace(str(path), name[:100])) from error

    async def like(self, request: Request) -> Response:
        """Return the hits of a query by a clip of the index."""
        _, _, k, where = _query(request)
        to, modality = _modality(request.query_params.get("to")), _modality(request.query_params.get("from"))
        clip = _chosen(request)
        return await self._found(lambda: self._index.like(clip, modality, to=to, k=k, where=where))

    async def picture(self, request: Request) -> Response:
        """Return a JPEG: the picture of a clip, or its waveform if the clip has no picture."""
        return await self._preview(request, still=True)

    async def media(self, request: Request) -> Response:
        """Return the first seconds of a clip, encoded for browsers."""
        return await self._preview(request, still=False)

    async def _preview(self, request: Request, *, still: bool) -> Response:
        item, paths, _ = await run_in_threadpool(self._index.item, _chosen(request))
        sound = paths.get("audio", "")
        source = PreviewSource(paths.get("visual") or sound, sound, item.segment, still)  # a sound may have a picture
        async with self._turn(self._views):  # the key is a checksum of whole files
            tag = f'"{await run_in_threadpool(key_of, source)}"'
        headers = {**HEADERS, "Cache-Control": "private, no-cache", "ETag": tag}  # every use is authorized
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        async with self._turn(self._previews):
            (preview,) = await run_in_threadpool(make_previews, [source])
        content = preview.picture if still else preview.media
        if not content:
            raise HTTPException(404, REASONS.get(preview.reason, "the clip has no media of this kind"))
        return Response(base64.b64decode(content), media_type="image/jpeg" if still else preview.type, headers=headers)

    def judge(self, request: Request) -> Response:
        """Write the grade of an item for a query to the file of judgments; return the number of judgments."""
        values = request.query_params
        fits = {"1": True, "0": False}.get(values.get("grade", ""))
        if fits is None:
            raise HTTPException(400, f"grade: {values.get('grade', '')[:40]!r} is not a grade; pass 1 or 0")
        return _json({"judgments": self._judgments.record(values.get("query", ""), values.get("item", ""), fits=fits)})

    @contextlib.asynccontextmanager
    async def _turn(self, places: asyncio.Semaphore) -> AsyncIterator[None]:
        """Occupy one of the `places` during the context. Raise HTTPException 503 if no place is free in time."""
        try:
            async with asyncio.timeout(self._limits.waiting):
                await places.acquire()
        except TimeoutError:
            raise HTTPException(503, "the server receives too many requests at a time; try again") from None
        try:
            yield
        finally:
            places.release()

    async def _found(self, search: Callable[[], Found]) -> Response:
        """Run a search in a thread, and return its hits as JSON. The number of simultaneous searches is limited."""
        async with self._turn(self._answers):
            results = await run_in_threadpool(search)
            shown = await run_in_threadpool(self._shown, [(hit.number, hit.item) for hit in results.hits])
        hits = [
            {**clip, **results.hit_to_json(rank), "clip": hit.item.clip}
            for rank, (clip, hit) in enumerate(zip(shown, results.hits, strict=True), 1)
        ]
        return _json({**results.facts_to_json(), "uncalibrated": results.uncalibrated, "hits": hits})

    def _shown(self, items: Sequence[tuple[int, Item]]) -> list[JsonObject]:
        """Return items with their numbers as JSON values.

        `has` has the modalities of the files of an item, and `plays` is false if these are only pictures. `vectors` has
        the modalities in which the item can be a query.
        """
        vectors = self._index.queries_of([number for number, _ in items])
        return [
            {
                "number": number, "id": item.id, "label": item.label, "has": sorted(item.media),
                "plays": any(Path(path).suffix.lower() not in PICTURE_SUFFIXES for path in item.media.values()),
                "vectors": list(modalities), "columns": dict(item.columns), "range": times_of(item.segment),
            }
            for (number, item), modalities in zip(items, vectors, strict=True)
        ]  # fmt: skip


def _query(request: Request) -> tuple[str, Modality | None, int, str | None]:
    """Return the kind of a query, the modality that is searched (None for all), k and the condition."""
    values = request.query_params
    k = _number(values.get("k", "12"))
    if not 1 <= k <= MOST_HITS:
        raise HTTPException(400, f"k is {k}; pass a whole number from 1 to {MOST_HITS}")
    kind, to = values.get("kind", ""), values.get("to")
    return kind, None if (kind, to) == ("text", ALL) else _modality(to), k, values.get("where") or None


def _chosen(request: Request) -> int | str:
    """Return the id (parameter `clip`) or the number (parameter `number`) of the clip that a request chooses."""
    values = request.query_params
    return values["clip"] if "clip" in values else _number(values.get("number", ""))


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise HTTPException(400, f"{text[:40]!r} is not a whole number of 1 to 15 digits; pass such a number")
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
    return _json({"error": " ".join(str(error).split())}, 400)


def _file(name: str) -> Response:
    content = files("aadml.search").joinpath("page", name).read_text(encoding="utf-8")
    kind = {"html": "text/html", "css": "text/css", "js": "text/javascript"}.get(name.rpartition(".")[2])
    return Response(STYLE * (name == "page.css") + content, media_type=kind or "application/json", headers=HEADERS)


def _start_decoder(index: Index) -> None:
    """Search by a silent sound, to start the decoder and load the model before the first query by a sound."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(InputError):  # some indexes read no sounds
        path = Path(folder) / "silence.wav"
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 16_000, 16_000, "NONE", ""))
            file.writeframes(bytes(2 * 16_000))
        index.search(audio=path, to=index.modalities[0], k=1)


def application(index: Index, access: Access, limits: ClientLimits) -> Starlette:
    """Build the app of an index.

    Args:
        index: index that is searched. The app writes only the file of judgments, and closes the index when the
            server stops.
        access: tokens of the printed addresses, and cookie.
        limits: limits of clients.
    """
    service = Service(index, limits)
    index.filter_seconds = limits.filter

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with keep_workers():
            ready = asyncio.create_task(run_in_threadpool(_start_decoder, index))
            yield
            await asyncio.gather(ready, return_exceptions=True)  # the first query has answered with its error
        index.close()

    answers = (
        service.health, service.facts, service.clips, service.clip, service.map, service.like, service.picture,
        service.media,
    )  # fmt: skip
    return Starlette(
        routes=[
            *(Route(path, _file(name), methods=["GET"]) for path, name in PAGE_FILES.items()),
            *(Route(f"/{answer.__name__}", answer) for answer in answers),
            Route("/search", service.search, methods=["POST"]),
            Route("/judge", service.judge, methods=["POST"]),
        ],
        middleware=[Middleware(Journal), Middleware(Guard, access=access, limits=limits)],
        exception_handlers={HTTPException: _refusal, InputError: _refusal},
        lifespan=lifespan,
    )


def serve(
    index: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    root_path: str = "",
    token_file: str | Path | None = None,
    model: str | Path | None = None,
    trust_code: bool = False,
    on_note: Callable[[str], None] | None = None,
) -> None:
    """Serve the search page of an index until the process is interrupted.

    Each printed address opens the index in one browser. Then the next address is printed. Other browsers receive only
    pages without data of the index. With a token of the team, the printed address opens the index in any browser.

    Args:
        index: the index file.
        host: address to listen on. A host other than 127.0.0.1, localhost or ::1 requires `token_file`.
        port: port to listen on.
        root_path: path below which a reverse proxy serves the page, such as "/clips".
        token_file: file with the token of the team, 32 to 200 characters. Programs send the token as a bearer token.
        model: current path of the model of the index, if the model was moved.
        trust_code: import the code from outside aadml that the index or its model names as `module:name`.
        on_note: called with the address of the page, and with each next address.

    Raises:
        InputError: the index, its model, `root_path` or the token is missing or invalid, or the address or port cannot
            be opened.
    """
    from aadml.search.server import run

    team, root = team_token(host, token_file), checked_root(root_path)
    name = socket.gethostname() if host in _EVERYWHERE else in_brackets(host)
    access = Access(port, on_note or (lambda _: None), host=name, root=root, team=team)
    with Index(index, model=model, trust_code=trust_code) as opened:
        _ = opened.encoder  # raises the error of a missing model before the first query
        limits = ClientLimits()
        run(application(opened, access, limits), host, port, limits, access.renew)
