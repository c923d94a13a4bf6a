"""The server: one machine, slow clients, many connections."""

import socket
import time

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from aadml.feature_extraction.ground.errors import InputError
from aadml.search import server as server_room


def test_it_listens_to_this_machine_alone_and_a_taken_port_is_one_line(site):
    assert site.socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(InputError, match=r"cannot be opened.*choose another"):
        server_room.listening(site.port)


@pytest.mark.slow
def test_slow_clients_are_ended_and_others_are_answered(site, monkeypatch):
    monkeypatch.setattr(server_room, "HEADER_SECONDS", 1.0)
    slow = [socket.create_connection(("127.0.0.1", site.port), timeout=30) for _ in range(4)]
    slow[0].sendall(b"GET /facts HTTP/1.1\r\nHost: ")  # never a whole head
    host = f"127.0.0.1:{site.port}\r\nCookie: {site.cookie}".encode()
    head = b"POST /search?kind=audio&to=audio HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: 1000\r\n\r\n"
    slow[1].sendall(head + b"a")  # never a whole body
    slow[2].sendall(b"GET /facts HTTP/1.1\r\nHost: " + host + b"\r\n\r\nGET /facts HT")  # never a second head
    assert site.ask("/facts")[0] == 200
    said = [b"".join(iter(lambda one=one: one.recv(4096), b"")) if one else b"" for one in slow]  # until it is closed
    assert said[0] == said[3] == b""
    assert b"408" in said[1].splitlines()[0]
    assert b'"items":35' in said[2]
    for one in slow:
        one.close()
    assert site.ask("/facts")[0] == 200


def test_many_connections_are_refused_and_then_taken_again(site):
    held = [socket.create_connection(("127.0.0.1", site.port), timeout=30) for _ in range(12)]
    time.sleep(0.3)
    assert site.ask("/facts")[0] == 503
    for one in held:
        one.close()
    time.sleep(0.5)
    assert site.ask("/facts")[0] == 200
