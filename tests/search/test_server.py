"""The server: one machine, slow clients, many connections."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index
from aadml.search import server as server_room
from aadml.search.uploads import ClientLimits

LIMITS = ClientLimits(connections=8)


def test_it_listens_to_this_machine_alone_and_a_taken_port_is_one_line(site):
    assert site.socket.getsockname()[0] == "127.0.0.1"
    assert site.socket.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)  # a server that has ended blocks no port
    with pytest.raises(InputError, match=r"cannot be opened.*choose another"):
        server_room.listening(site.port)


def test_the_port_accepts_connections_when_the_address_is_printed(monkeypatch):
    opened = server_room.listening(0)
    port, connected = opened.getsockname()[1], []
    monkeypatch.setattr(server_room, "listening", lambda *_: opened)
    monkeypatch.setattr(server_room.uvicorn.Server, "run", lambda *_: None)

    def on_start():
        with socket.create_connection(("127.0.0.1", port), timeout=4):
            connected.append(port)

    server_room.run(lambda: None, "127.0.0.1", port, LIMITS, on_start)
    assert connected == [port]


def test_a_first_and_a_second_head_have_a_time_limit(site, monkeypatch):
    monkeypatch.setattr(server_room, "HEADER_SECONDS", 0.3)
    with (
        socket.create_connection(("127.0.0.1", site.port), timeout=4) as silent,
        socket.create_connection(("127.0.0.1", site.port), timeout=4) as client,
    ):
        head = f"GET /facts HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nCookie: {site.cookie}\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET /facts HT")
        assert b"".join(iter(lambda: client.recv(4096), b"")).count(b"HTTP/1.1") == 0  # until it is closed
        assert silent.recv(4096) == b""


def test_a_body_may_take_longer_than_a_head(site, monkeypatch):
    monkeypatch.setattr(server_room, "HEADER_SECONDS", 0.6)
    with socket.create_connection(("127.0.0.1", site.port), timeout=4) as client:
        head = f"POST /search?kind=audio&to=audio HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nCookie: {site.cookie}\r\n"
        client.sendall(f"{head}Content-Length: 1\r\n\r\n".encode())
        time.sleep(0.9)
        client.sendall(b"x")
        assert client.recv(4096).startswith(b"HTTP/1.1 400")


def test_the_time_limit_of_a_head_ends_with_the_head_or_the_connection(monkeypatch):
    waited = []
    connection = server_room.Impatient.__new__(server_room.Impatient)
    connection.loop = SimpleNamespace(
        call_later=lambda seconds, call: SimpleNamespace(
            seconds=seconds, call=call, cancel=lambda: waited.append(seconds)
        )
    )
    connection._wait()
    assert connection._ending.call == connection._give_up
    for _ in range(2):
        connection._stop()
        assert (connection._ending, waited) == (None, [10])
    lost = []
    monkeypatch.setattr(server_room.H11Protocol, "connection_lost", lambda self, error: lost.append(error))
    connection._wait()
    connection.connection_lost(None)
    assert (connection._ending, waited, lost) == (None, [10, 10], [None])


def test_the_server_has_limits_and_ends_idle_connections(monkeypatch):
    import uvicorn

    served = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: served.append((self.config, sockets[0])))
    started = []
    server_room.run(lambda: None, "127.0.0.1", 0, LIMITS, lambda: started.append(True))
    ((config, opened),) = served
    assert started == [True]
    assert opened.fileno() == -1  # closed with the server
    assert config.http is server_room.Impatient
    assert (config.ws, config.access_log, config.server_header) == ("none", False, False)
    assert config.limit_concurrency == LIMITS.connections
    assert config.timeout_keep_alive == 5
    assert config.timeout_graceful_shutdown == 3
    assert config.h11_max_incomplete_event_size == 2**14


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


def test_two_hundred_clients_at_a_time_are_answered(served, site):
    site = served(Index(site.index.path), ClientLimits())
    with ThreadPoolExecutor(200) as clients:
        answers = [*clients.map(lambda _: site.ask("/like?number=3&from=audio&to=audio")[0], range(200))]
    assert set(answers) == {200}
