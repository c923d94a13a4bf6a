import threading
from http.server import ThreadingHTTPServer

import pytest

from aadml.feature_extraction.weights.table import WEIGHTS, WeightFile
from tests.feature_extraction.weights.toy_server import CONTENT, SHA256, Handler


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AADML_MIRROR", raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = False
        running.asked, running.breaks, running.tag, running.continues = [], [], None, True
        running.content, running.status = CONTENT, 200
        running.header, running.length = "ETag", True
        thread = threading.Thread(target=running.serve_forever, args=[0.01])
        thread.start()
        url = f"http://127.0.0.1:{running.server_port}/toy.bin"
        entry = WeightFile("toy.bin", url, "a toy", "CC0-1.0", "nobody", sha256=SHA256[:8])
        monkeypatch.setitem(WEIGHTS, "toy", entry)
        yield running
        running.shutdown()
        thread.join()
