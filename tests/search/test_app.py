"""The server of the page: what it answers, and what it refuses to everybody."""

import asyncio
import base64
import csv
import json
import logging
import re
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.segment import WHOLE
from aadml.feature_extraction.media.inputs import REASONS
from aadml.reports.page import STYLE
from aadml.reports.previews import Preview, PreviewSource
from aadml.retrieval.judgments import read_judgments
from aadml.search import Index, access, app
from aadml.search.encoders import ModelEncoder
from aadml.search.results import Found
from aadml.search.store import Item
from aadml.search.uploads import ClientLimits
from tests.search.small_index import COLUMNS, FACTS, change, entry


def test_the_page_and_its_parts_load_nothing_from_elsewhere(site):
    for path, kind in (
        ("/", "text/html"),
        ("/page.css", "text/css"),
        ("/page.js", "text/javascript"),
        ("/docs", "text/html"),
    ):
        status, content, headers = site.ask(path)
        assert status == 200
        assert headers["content-type"].startswith(kind)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert b"http://" not in content
        assert b"https://" not in content
        assert content.startswith(STYLE.encode()) == (path == "/page.css")


def test_facts(site):
    status, content, _ = site.ask("/facts")
    found = json.loads(content)
    assert status == 200
    assert found["items"] == 35
    assert found["questions"] == [["audio", "audio"], ["visual", "visual"], ["clip", "audio"], ["clip", "visual"]]
    assert found["columns"][:3] == ["id", "split", "label"]
    assert found["model"] == "the index has no model, so each modality is searched by itself"
    assert found["most_bytes"] == 200_000


ALONE = "the index has no model, so each modality is searched by itself"
TOWERS = "towers of a pretrained model, not trained here"


@pytest.mark.parametrize(
    ("pairs", "trained", "model", "questions"),
    [
        (["aa", "vv"], False, ALONE, [["audio", "audio"], ["visual", "visual"], ["clip", "audio"], ["clip", "visual"]]),
        (["aa", "vv", "tv"], False, TOWERS, [["audio", "audio"], ["visual", "visual"], ["clip", "audio"],
                                             ["clip", "visual"], ["text", "visual"]]),
        (["aa"], False, ALONE, [["audio", "audio"], ["clip", "audio"]]),
        (["aa", "av"], True, "model mine", [["audio", "audio"], ["audio", "visual"], ["clip", "audio"],
                                            ["clip", "visual"]]),
    ],
)  # fmt: skip
def test_the_page_offers_the_queries_that_the_encoder_compares(pairs, trained, model, questions):
    class Encoder(ModelEncoder if trained else SimpleNamespace):
        def can_query(self, modality, to):
            return modality[0] + to[0] in pairs

    class Stub(SimpleNamespace):
        def __len__(self):
            return 7

    encoder = Encoder(SimpleNamespace(facts=SimpleNamespace(label="mine"))) if trained else Encoder()
    index = Stub(
        path=Path("clips.index"), encoder=encoder, modalities=("audio", "visual"), refresh=lambda: None,
        counts=lambda: {"audio": 7}, columns=lambda: ["id"],
    )  # fmt: skip
    content = json.loads(app.Service(index, ClientLimits()).facts(None).body)
    assert content == {
        "name": "clips.index", "items": 7, "modalities": ["audio", "visual"], "questions": questions,
        "vectors": {"audio": 7}, "columns": ["id"], "model": model, "most_bytes": 100_000_000,
        "judgments": "clips.index.judgments.csv",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "shown"), [("caf%C3%A9.wav", "café.wav"), ("x" * 101, "x" * 100), ("", "the file"), (None, "the file")]
)
def test_the_error_of_an_upload_has_the_name_of_its_file(site, monkeypatch, name, shown):
    def fails(self, *, audio, **_):
        raise InputError(f"{audio} cannot be read; pass --data {audio.parent}")

    monkeypatch.setattr(Index, "search", fails)
    headers = {} if name is None else {"X_Name": name}
    status, content, _ = site.ask("/search?kind=audio&to=audio", "POST", b"x", **headers)
    assert status == 400
    assert json.loads(content)["error"].startswith(f"{shown} cannot be read; pass --data ")


def test_words_are_cut_to_a_thousand_characters(site, monkeypatch):
    asked = []
    monkeypatch.setattr(Index, "search", lambda self, **words: asked.append(words) or Found((), (), "", 0, ""))
    assert site.ask(f"/search?kind=text&text={'a' * 1001}&to=all&k=7&where=0", "POST")[0] == 200
    assert asked == [{"text": "a" * 1000, "to": None, "k": 7, "where": "0"}]


def test_clips_are_browsed_with_counts_that_follow_the_condition(site):
    page = json.loads(site.ask("/clips?limit=5")[1])
    assert page["total"] == sum(count for _, count in page["counts"]["label"]["values"]) == 35
    assert page["counts"]["label"]["of"] == 3
    assert page["counts"]["split"] == {"values": [["train", 20], ["test", 10], ["valid", 5]], "of": 3}
    assert len({clip["label"] for clip in page["examples"]}) == len(page["examples"]) == 3
    shown = [
        clip["id"]
        for offset in range(0, 35, 5)
        for clip in json.loads(site.ask(f"/clips?limit=5&offset={offset}")[1])["clips"]
    ]
    assert len(set(shown)) == 35
    part = json.loads(site.ask("/clips?where=split+%3D+%27valid%27")[1])
    assert (part["total"], part["counts"]["split"]) == (5, {"values": [["valid", 5]], "of": 1})
    assert {clip["id"] for clip in part["clips"]} < set(shown)
    assert json.loads(site.ask(f"/clip?clip={shown[0]}")[1]) == json.loads(site.ask("/clips?limit=1")[1])["clips"][0]


def test_answers_in_full(site):
    clip = {"number": 3, "id": "synthetic-000002", "label": "class 0", "has": [], "plays": False,
            "vectors": ["audio", "visual"], "columns": {}, "range": None}  # fmt: skip
    assert json.loads(site.ask("/clip?number=3")[1]) == clip
    found = json.loads(site.ask("/like?number=3&from=audio&to=audio&k=1")[1])
    assert found == {
        "asked": ["audio"], "to": "audio", "among": 35, "looked_at": 35, "similarity": "cosine", "nothing_fits": None,
        "calibration": None, "uncalibrated": "the index has 5 of the 30 validation clips that are needed",
        "hits": [
            {**clip, "clip": clip["id"], "rank": 1, "score": pytest.approx(1), "second_key": None,
             "probability": None, "split": "train", "caption": None, "moment": None, "ranks": {}}
        ],
    }  # fmt: skip
    for path, count in (
        ("/like?number=3&from=audio&to=audio", 12),
        ("/like?number=3&from=audio&to=audio&k=100", 35),
        ("/clips?limit=0", 0),
        ("/clips", 24),
        ("/clips?limit=100", 35),
    ):
        content = json.loads(site.ask(path)[1])
        assert len(content["hits" if "hits" in content else "clips"]) == count


@pytest.mark.parametrize(
    ("media", "has", "plays"),
    [
        ({"audio": "a.mp4", "visual": "a.mp4"}, ["audio", "visual"], True),
        ({"audio": "a.wav", "visual": "a.PNG"}, ["audio", "visual"], True),
        ({"visual": "a.PNG"}, ["visual"], False),
        ({}, [], False),
    ],
)
def test_a_clip_states_its_files_and_the_modalities_of_its_vectors(index, media, has, plays):
    change(index, FACTS, COLUMNS, [], [replace(entry("a"), item=Item("a", media, columns={"speaker": "", "year": ""}))])
    with Index(index) as opened:
        item, _, number = opened.item("a")
        (clip,) = app.Service(opened, ClientLimits())._shown([(number, item)])
    assert (clip["has"], clip["plays"], clip["vectors"]) == (has, plays, ["audio"])


@pytest.mark.parametrize(("door", "kind"), [("picture", "image/jpeg"), ("media", "video/mp4")])
def test_a_preview_is_sent_again_only_if_it_has_changed(site, monkeypatch, door, kind):
    paths, sources = {"audio": "a.wav"}, []
    preview = Preview("video/mp4", *(base64.b64encode(part).decode() for part in (b"media", b"picture")))
    monkeypatch.setattr(Index, "item", lambda *_: (SimpleNamespace(segment=WHOLE), paths, 1))
    monkeypatch.setattr(app, "key_of", lambda _: "m")
    monkeypatch.setattr(app, "make_previews", lambda wanted: sources.extend(wanted) or [preview])
    for tag in ("", '"l"', '"n"'):
        status, content, headers = site.ask(f"/{door}?number=1", If_None_Match=tag)
        assert (status, content, headers["etag"]) == (200, door.encode(), '"m"')
        assert (headers["content-type"], headers["cache-control"]) == (kind, "private, no-cache")
    assert site.ask(f"/{door}?number=1", If_None_Match='"m"')[:2] == (304, b"")
    paths["visual"] = "a.mp4"
    site.ask(f"/{door}?number=1")
    still = door == "picture"
    assert sources == [PreviewSource("a.wav", "a.wav", WHOLE, still)] * 3 + [
        PreviewSource("a.mp4", "a.wav", WHOLE, still)
    ]


@pytest.mark.parametrize(
    ("door", "reason", "says"),
    [("picture", "missing", REASONS["missing"]), ("media", "", "the clip has no media of this kind")],
)
def test_a_clip_without_a_preview_is_not_found(site, monkeypatch, door, reason, says):
    monkeypatch.setattr(app, "make_previews", lambda _: [Preview(reason=reason)])
    status, content, _ = site.ask(f"/{door}?number=1")
    assert (status, json.loads(content)) == (404, {"error": says})


def test_a_request_that_waits_too_long_for_its_turn_is_refused():
    async def crowded():
        service = app.Service(SimpleNamespace(path=Path("i")), ClientLimits(waiting=0.01))
        places = [service._answers, service._previews, service._views, service._uploads]
        assert [one._value for one in places] == [2, 2, 4, 64]
        async with service._turn(places[0]), service._turn(places[0]):
            with pytest.raises(app.HTTPException, match="receives too many requests at a time; try again") as refused:
                async with service._turn(places[0]):
                    pass
        assert (refused.value.status_code, places[0]._value) == (503, 2)

    asyncio.run(crowded())


def test_the_map_has_a_point_for_each_clip(site):
    layout = json.loads(site.ask("/map?of=visual")[1])
    assert [layout["classes"][place] for *_, place in layout["points"]] == list(site.index.layout("visual").labels)
    assert len({number for number, *_ in layout["points"]}) == 35
    assert {0, 1000} == {
        edge
        for place in (1, 2)
        for edge in (min(p[place] for p in layout["points"]), max(p[place] for p in layout["points"]))
    }
    assert len(layout["classes"]) == 3


def test_judgments_are_written_and_replaced_and_read_by_an_evaluation(site, tmp_path):
    for item, grade in (("a, b", 1), ("c", 0), ("a, b", 0), ("a, b", 1)):
        status, content, _ = site.ask(f"/judge?query=q&item={quote(item)}&grade={grade}", "POST")
        assert status == 200
    assert json.loads(content) == {"judgments": 2}
    (path,) = site.index.path.parent.glob("*.judgments.csv")
    assert path.read_text() == 'query,item,grade\nq,"a, b",1\nq,c,0\n'
    assert read_judgments(path).grades == {"q": {"a, b": 1.0}}
    for values in (
        "query=q&item=c&grade=2",
        "query=&item=c&grade=1",
        "query=q%0Ar&item=c&grade=1",
        "query=q%E2%80%A8&item=c&grade=1",
        "query=q%0A&item=c&grade=1",
        f"query={'q' * 501}&item=c&grade=1",
    ):
        assert site.ask(f"/judge?{values}", "POST")[0] == 400
    path.write_text("query,item,grade\n" + "x" * 200_000 + ",b,1\n")
    before = csv.field_size_limit(131_072)
    try:
        assert "move the file" in json.loads(site.ask("/judge?query=q&item=c&grade=1", "POST")[1])["error"]
    finally:
        csv.field_size_limit(before)
    path.write_text("own notes")
    assert "move the file" in json.loads(site.ask("/judge?query=q&item=c&grade=1", "POST")[1])["error"]
    assert path.read_text() == "own notes"


def test_the_document_of_the_api_describes_every_route_and_the_page_uses_only_these(site):
    document = json.loads(site.ask("/openapi.json")[1])
    data = {route.path: route.methods - {"HEAD"} for route in site.app.routes}
    assert {path: {m.upper() for m in methods} for path, methods in document["paths"].items()} == {
        path: methods for path, methods in data.items() if path not in access.PAGE_FILES
    }
    script = "".join(site.ask(f"/{name}.js")[1].decode() for name in ("page", "cards", "browse"))
    assert set(re.findall(r"answer\([`\"](\w+)", script)) | {"picture", "media", "health"} == {
        path[1:] for path in document["paths"]
    }
    body = json.loads(site.ask("/like?number=3&from=audio&to=audio")[1])
    schemas = document["components"]["schemas"]
    assert body.keys() == schemas["Results"]["properties"].keys()
    assert body["hits"][0].keys() == schemas["Hit"]["properties"].keys()
    for path, name in (
        ("/facts", "Facts"),
        ("/clips", "Clips"),
        ("/clip?number=1", "Clip"),
        ("/map?of=audio", "Map"),
        ("/health", "Health"),
    ):
        assert json.loads(site.ask(path)[1]).keys() == schemas[name]["properties"].keys()


def test_each_request_is_a_line_of_json_without_the_question(site, caplog):
    with caplog.at_level(logging.INFO, "aadml.requests"):
        site.ask("/clips?where=secret")
        until = time.monotonic() + 30
        while not caplog.records and time.monotonic() < until:  # a request is logged after its answer is sent
            time.sleep(0.01)
    (line,) = [json.loads(record.message) for record in caplog.records if record.name == "aadml.requests"]
    assert (line["method"], line["path"], line["status"]) == ("GET", "/clips", 400)
    assert "secret" not in str(line)


def test_a_clip_of_the_index_asks(site):
    status, content, _ = site.ask("/like?number=3&from=audio&to=audio&k=5&where=")
    found = json.loads(content)
    assert status == 200
    assert found["hits"][0]["number"] == 3
    assert len(found["hits"]) == 5
    assert found["uncalibrated"] == "the index has 5 of the 30 validation clips that are needed"
    assert "media" not in found["hits"][0]
    status, content, _ = site.ask("/like?number=3&from=audio&to=audio&where=label+%3D+%27nothing%27")
    assert json.loads(content)["hits"] == []


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/like?number=99999&from=audio&to=audio", "this index has no clip number 99999 with audio"),
        ("/like?number=1&from=audio&to=visual", "built without a model"),
        ("/like?number=1&from=audio&to=smell", "is not a modality"),
        ("/like?number=-1&from=audio&to=audio", "is not a whole number"),
        ("/like?number=1&from=audio&to=audio&k=101", "k is 101; pass a whole number from 1 to 100"),
        ("/like?number=1&from=audio&to=audio&k=0", "k is 0; pass a whole number from 1 to 100"),
        ("/like?number=1&from=audio&to=audio&where=1)%20UNION%20SELECT%20value%20FROM%20meta", "where"),
        ("/picture?number=../../secret.txt", "is not a whole number"),
        ("/media?number=" + "9" * 400, f"'{'9' * 40}' is not a whole number"),
        ("/media?number=" + "9" * 16, "is not a whole number"),
        ("/media?number=" + "9" * 15, "clip number 999999999999999 is not in this index"),
        ("/picture?number=%D9%A1", "is not a whole number"),
        ("/picture?number=777", "clip number 777 is not in this index"),
        ("/clip?clip=..%2Fsecret.txt", "clip '../secret.txt' is not in this index"),
        ("/clip?clip=--abc", "clip '--abc' is not in this index"),
        ("/clips?limit=101", "limit is 101; pass a whole number up to 100"),
        (f"/clip?clip={'c' * 81}", f"clip '{'c' * 80}' is not in this index; pass the id of a clip"),
        ("/clips?where=1)%20UNION%20SELECT%20value%20FROM%20meta", "where"),
        (f"/map?of={'s' * 41}", f"'{'s' * 40}' is not a modality; choose from audio, visual, text"),
    ],
)
def test_a_wrong_question_is_a_sentence(site, path, says):
    status, content, _ = site.ask(path)
    assert status == 400
    assert says in json.loads(content)["error"]


@pytest.mark.parametrize(
    "path",
    ["/secret.txt", "/../secret.txt", "/%2e%2e/secret.txt", "/page.js/../../secret.txt", "//etc/passwd", "/page.css%00",
     "/clips.index", "/page/page.html"],
)  # fmt: skip
def test_no_file_has_an_address(site, path):
    status, content, _ = site.ask(path)
    assert status == 404
    assert b"nobody reads" not in content


def test_a_filter_of_the_page_gets_a_fifth_of_a_second(site):
    slow = (
        "exists(select 1 from item a, item b, item c, item d, item e where a.id || b.id || c.id || d.id || e.id = '')"
    )
    status, content, _ = site.ask(f"/like?number=3&from=audio&to=audio&where={quote(slow)}")
    assert status == 400
    assert json.loads(content)["error"].endswith("the condition takes longer than 0.2 s; simplify the condition")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (f"/search?kind={'s' * 41}&to=audio", f"kind: '{'s' * 40}' is not a kind of query; choose from audio, visual,"),
        (f"/judge?query=a&item=b&grade={'2' * 41}", f"grade: '{'2' * 40}' is not a grade; pass 1 or 0"),
    ],
)
def test_a_long_wrong_value_is_echoed_in_part(site, path, says):
    status, content, _ = site.ask(path, "POST", b"x")
    assert status == 400
    assert json.loads(content)["error"].startswith(says)


def test_it_writes_nothing_but_judgments(site):
    for method in ("PUT", "DELETE", "PATCH"):
        assert site.ask("/search", method)[0] == 405
    assert site.ask("/search")[0] == 405


def test_words_without_a_model_that_reads_are_refused(site):
    for to in ("audio", "all"):
        status, content, _ = site.ask(f"/search?kind=text&text=rain&to={to}", "POST")
        assert status == 400
        assert "does not compare words with" in json.loads(content)["error"]
    assert site.ask("/like?number=1&from=audio&to=all")[0] == 400


def test_items_are_read_outside_the_event_loop(site, monkeypatch):
    threads, item = [], Index.item
    monkeypatch.setattr(Index, "item", lambda *words: threads.append(threading.current_thread()) or item(*words))
    assert site.ask("/clip?number=1")[0] == 200
    assert threads
    assert site.thread not in threads


@pytest.fixture
def replaceable(served, tmp_path):
    """A server of an index, and a function that replaces the index by one of the same clips with other numbers."""
    from aadml.data.synthetic import synthetic
    from aadml.feature_extraction.feature_file.writing import write_features
    from aadml.search.uploads import ClientLimits

    content = synthetic(classes=3, train=20, valid=5, test=10, dimensions=(6, 8), difficulty=0.3)
    for name, rows in (("a", slice(None)), ("b", slice(None, None, -1))):
        write_features(tmp_path / f"{name}.h5", content.select(range(35)[rows]))
        Index.build(tmp_path / f"{name}.h5", tmp_path / f"{name}.index").close()
    site = served(Index(tmp_path / "a.index"), ClientLimits(waiting=60))
    return site, lambda: (tmp_path / "b.index").replace(tmp_path / "a.index")


@pytest.mark.parametrize(("door", "path"), [("like", "/like?from=audio&to=audio&k=1&"), ("item", "/clip?")])
def test_an_id_names_its_clip_even_if_the_index_is_replaced_meanwhile(replaceable, monkeypatch, door, path):
    site, replace_index = replaceable
    name = site.index.item(1)[0].id
    call = getattr(Index, door)

    def late(*words, **named):
        monkeypatch.setattr(Index, door, call)
        replace_index()
        return call(*words, **named)

    monkeypatch.setattr(Index, door, late)
    content = json.loads(site.ask(f"{path}clip={quote(name)}")[1])
    assert (content["hits"][0] if "hits" in content else content)["id"] == name


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("aadml.search.index.browse", "/clips"),
        ("aadml.search.index.vector_map", "/map?of=audio"),
        ("aadml.search.app.key_of", "/picture?number=1"),
    ],
)
def test_slow_pages_do_not_delay_a_question(replaceable, monkeypatch, place, path):
    site, _ = replaceable
    begun, going_on = threading.Event(), threading.Event()
    monkeypatch.setattr(place, lambda *_: begun.set() or going_on.wait(60))
    pages = [threading.Thread(target=site.ask, args=(path,)) for _ in range(50)]  # more than there are threads
    answers = []
    question = threading.Thread(target=lambda: answers.append(site.ask("/like?number=3&from=audio&to=audio")[0]))
    try:
        for page in pages:
            page.start()
        assert begun.wait(30)
        time.sleep(1)  # until the other requests of pages wait too
        question.start()
        question.join(10)
        assert answers == [200]
    finally:
        going_on.set()
        for thread in (*pages, question):
            thread.join()


def test_a_decoder_that_fails_at_the_start_leaves_no_error_at_the_end(features, tmp_path, monkeypatch):
    def fails(index):
        raise RuntimeError("out of memory")

    async def lives():
        async with site.router.lifespan_context(site):
            await asyncio.sleep(0)

    monkeypatch.setattr(app, "_start_decoder", fails)
    index = Index.build(features, tmp_path / "clips.index")
    site = app.application(index, access.Access(8765, print), ClientLimits())
    asyncio.run(lives())
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        index._search.database.execute("SELECT 1")
