"""Downloads from a mirror of the hub, its cache, and its errors."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parents[3]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROGRAM = """
import json, sys
from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.ground.errors import InputError
try:
    made = extractor(sys.argv[1], "text")
    print(json.dumps({key: made.about[key] for key in ("model", "revision", "license", "source", "files")}))
except InputError as error:
    print(json.dumps(str(error)))
"""


CHECK = """
import json, sys
from aadml.feature_extraction.hub.towers import check_tower
print(json.dumps(check_tower(sys.argv[1], "text")))
"""


@contextmanager
def mirror(folder, gated=()):
    """Serve a folder in the way of the hub, as owner/tiny."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            path = self.path.partition("?")[0]
            files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
            name = path.removeprefix("/api/models/").removeprefix("/").split("/resolve/")[0]
            if any(name.startswith(one) for one in gated):
                self.answer(403, b"gated", {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"})
            elif not name.startswith("owner/tiny"):
                self.answer(404, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "none"})
            elif "/revision/v9" in path:
                self.answer(404, b"", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "none"})
            elif "/tree/" in path:
                found = [
                    {"type": "file", "path": n, "oid": "0" * 40, "size": (folder / n).stat().st_size} for n in files
                ]
                self.answer(200, json.dumps(found).encode(), {"Content-Type": "application/json"})
            elif path.startswith("/api/models/"):
                found = {"id": "owner/tiny", "modelId": "owner/tiny", "sha": COMMIT, "private": False, "tags": [],
                         "downloads": 0, "likes": 0, "siblings": [{"rfilename": n} for n in files]}  # fmt: skip
                self.answer(200, json.dumps(found).encode(), {"Content-Type": "application/json"})
            else:
                content = (folder / path.split(f"/resolve/{COMMIT}/")[1]).read_bytes()
                self.answer(200, content, {"X-Repo-Commit": COMMIT, "ETag": f'"{abs(hash(content)):040x}"'})

        def answer(self, code, content, headers):
            self.send_response(code)
            for key, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


@pytest.fixture
def asked(tmp_path):
    """Load a model in a new process, since the library reads its settings once."""

    def ask(name, endpoint, program=PROGRAM, **settings):
        environment = os.environ | {
            "PYTHONPATH": str(ROOT), "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1", "AADML_CACHE": str(tmp_path / "cache"),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, name], capture_output=True, text=True, timeout=240,
            env=environment | settings,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return ask


@pytest.mark.slow
def test_a_model_is_downloaded_once_and_then_loaded_without_the_hub(network, asked):
    folder = network("bert")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    (folder / "pytorch_model.bin").write_bytes(b"not wanted where there are safetensors")
    try:
        with mirror(folder, gated=("owner/tiny-gated",)) as endpoint:
            found = asked("hf:owner/tiny", endpoint)
            assert (found["model"], found["revision"], found["license"]) == ("owner/tiny", COMMIT, "mit")
            assert found["source"] == {"model": "owner/tiny", "revision": COMMIT}
            assert "model.safetensors" in found["files"]
            assert "pytorch_model.bin" not in found["files"]
        assert asked("hf:owner/tiny", endpoint, HF_HUB_OFFLINE="1") == found
    finally:
        (folder / "README.md").unlink()
        (folder / "pytorch_model.bin").unlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("owner/tiny-gated", "access is restricted; accept its terms"),
        ("owner/none", "neither a folder nor a public model on the Hugging Face Hub"),
        ("owner/tiny@v9", "has no revision 'v9'"),
    ],
)
def test_an_error_of_the_hub_is_one_line(network, asked, name, message):
    with mirror(network("bert"), gated=("owner/tiny-gated",)) as endpoint:
        said = asked(f"hf:{name}", endpoint)
    assert message in said
    assert "\n" not in said


@pytest.mark.slow
def test_a_check_downloads_no_weights(network, asked, tmp_path):
    with mirror(network("bert")) as endpoint:
        assert asked("hf:owner/tiny", endpoint, CHECK) is None
        names = {path.name for path in (tmp_path / "home").rglob("*")}
        assert {"config.json", "tokenizer.json"} <= names
        assert "model.safetensors" not in names
        assert "model.safetensors" in asked("hf:owner/tiny", endpoint)["files"]
