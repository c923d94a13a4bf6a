"""Journal of requests: one line for each, also after an error."""

import json
import logging

import pytest

pytest.importorskip("starlette")

from aadml.search import journal


@pytest.mark.parametrize(
    ("kind", "fails", "status"), [("http", False, 201), ("http", True, 500), ("lifespan", False, None)]
)
def test_a_request_is_logged_with_its_status_and_duration(monkeypatch, caplog, kind, fails, status):
    async def app(scope, receive, send):
        if fails:
            raise RuntimeError("a fault")
        await send({"type": "http.response.start", "status": 201})
        await send({"type": "http.response.body"})

    async def send(message):
        sent.append(message["type"])

    sent, clock = [], iter((3.0, 5.12344))
    monkeypatch.setattr(journal.time, "time", lambda: 7.5)
    monkeypatch.setattr(journal.time, "monotonic", lambda: next(clock, 6.0))
    with caplog.at_level(logging.INFO, "aadml.requests"):
        call = journal.Journal(app)({"type": kind, "method": "GET", "path": "/facts"}, None, send)
        if fails:
            with pytest.raises(RuntimeError, match="a fault"):
                call.send(None)
        else:
            with pytest.raises(StopIteration):
                call.send(None)
            assert sent == ["http.response.start", "http.response.body"]
    line = {"time": 7.5, "method": "GET", "path": "/facts", "status": status, "seconds": 2.1234}
    assert [json.loads(record.message) for record in caplog.records] == ([] if status is None else [line])
