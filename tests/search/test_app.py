"""The server of the page: what it answers, and what it refuses to everybody."""

import asyncio
import json
import threading
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from aadml.feature_extraction.feature_file import UNLABELLED, read_features, write_features
from aadml.search import Index
from aadml.search.app import application
from aadml.search.uploads import ClientLimits


def test_the_page_and_its_parts_load_nothing_from_elsewhere(site):
    for path, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")):
        status, content, headers = site.ask(path)
        assert status == 200
        assert headers["content-type"].startswith(kind)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert b"http://" not in content
        assert b"https://" not in content


def test_facts(site):
    status, content, _ = site.ask("/facts")
    found = json.loads(content)
    assert status == 200
    assert found["items"] == 35
    assert found["questions"] == [["audio", "audio"], ["visual", "visual"], ["clip", "audio"], ["clip", "visual"]]
    assert found["columns"][:3] == ["id", "split", "label"]
    assert found["model"] == "the index has no model, so each modality is searched by itself"
    assert found["example"] == "label = 'dog'"
    assert found["most_bytes"] == 200_000


def test_without_labels_the_example_of_a_condition_reads_another_column(features, tmp_path):
    content = read_features(features)
    write_features(tmp_path / "f.h5", replace(content, labels=np.full(len(content.ids), UNLABELLED)))
    with Index.build(tmp_path / "f.h5", tmp_path / "i") as index:
        (route,) = [route for route in application(index, None, ClientLimits()).routes if route.path == "/facts"]
        response = asyncio.run(route.endpoint(None))
        assert json.loads(response.body)["example"] == "id LIKE '%rain%'"


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
        ("/like?number=99999&from=audio&to=audio", "clip number 99999 is not in this index"),
        ("/like?number=1&from=audio&to=visual", "built without a model"),
        ("/like?number=1&from=audio&to=smell", "is not a modality"),
        ("/like?number=-1&from=audio&to=audio", "is not a whole number"),
        ("/like?number=1&from=audio&to=audio&k=1000000", "1 to 100"),
        ("/like?number=1&from=audio&to=audio&where=1)%20UNION%20SELECT%20value%20FROM%20meta", "where"),
        ("/previews?numbers=../../secret.txt", "is not a whole number"),
        ("/previews?numbers=1,2,3,4,5,6,7,8,9", "request at most 8"),
        ("/previews?numbers=" + "9" * 400, "is not a whole number"),
        ("/previews?numbers=%D9%A1", "is not a whole number"),
        ("/previews?numbers=777", "clip number 777 is not in this index"),
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
    assert json.loads(content)["error"].endswith("the condition takes longer than 0.2 s; simplify it")


def test_it_writes_nothing(site):
    for method in ("PUT", "DELETE", "PATCH"):
        assert site.ask("/search", method)[0] == 405
    assert site.ask("/search")[0] == 405


def test_words_without_a_model_that_reads_are_refused(site):
    for to in ("audio", "all"):
        status, content, _ = site.ask(f"/search?kind=text&text=rain&to={to}", "POST")
        assert status == 400
        assert "does not read words" in json.loads(content)["error"]
    assert site.ask("/like?number=1&from=audio&to=all")[0] == 400


def test_items_are_read_outside_the_event_loop(site, monkeypatch):
    threads, item = [], Index.item
    monkeypatch.setattr(Index, "item", lambda *words: threads.append(threading.current_thread()) or item(*words))
    assert site.ask("/previews?numbers=1")[0] == 200
    assert threads
    assert site.thread not in threads
