"""A local stand-in of the Hugging Face Hub: the requests by which huggingface_hub uploads and downloads models."""

import base64
import hashlib
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit


class Hub(ThreadingHTTPServer):
    """Repositories: name -> commits as (sha, path -> content), the last one being `main`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories, self.private, self.requests = {}, {}, []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def commit(self, name, files):
        commits = self.repositories[name]
        content = {**(commits[-1][1] if commits else {}), **files}
        sha = hashlib.sha1(repr((len(commits), sorted(content.items()))).encode()).hexdigest()
        commits.append((sha, content))
        return sha

    def files(self, name, revision="main"):
        """Content of a revision, with its commit; None if there is none."""
        commits = self.repositories[name]
        if revision == "main" and commits:
            return commits[-1]
        return next((commit for commit in commits if commit[0] == revision), None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        data, path = self.rfile.read(int(self.headers["Content-Length"])), urlsplit(self.path).path
        self.server.requests.append(path)
        parts = path.split("/")
        if path == "/api/repos/create":
            wanted = json.loads(data)
            name = "/".join(filter(None, (wanted.get("organization"), wanted["name"])))
            self.server.repositories.setdefault(name, [])
            self.server.private[name] = wanted.get("visibility") == "private" or wanted.get("private", False)
            return self._json({"url": f"{self.server.address}/{name}", "name": name})
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        name = "/".join(parts[3:5])
        if parts[5:6] == ["preupload"]:
            wanted = [file["path"] for file in json.loads(data)["files"]]
            modes = [{"path": file, "uploadMode": "regular", "shouldIgnore": False} for file in wanted]
            return self._json({"files": modes})
        lines = [json.loads(line) for line in data.splitlines()]
        files = [line["value"] for line in lines if line["key"] == "file"]
        sha = self.server.commit(name, {file["path"]: base64.b64decode(file["content"]) for file in files})
        return self._json({"commitUrl": f"{self.server.address}/{name}/commit/{sha}", "commitOid": sha})

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(path)
        parts = path.removeprefix("/api/models").strip("/").split("/")
        name, kind, revision = "/".join(parts[:2]), *[*parts[2:4], "", "main"][:2]
        if name not in self.server.repositories:
            return self._missing("RepoNotFound")
        found = self.server.files(name, revision if kind else "main")
        if found is None and (kind or self.server.repositories[name]):
            return self._missing("RevisionNotFound")
        sha, files = found or (None, {})
        if kind == "tree":
            sums = {file: hashlib.sha1(data).hexdigest() for file, data in files.items()}
            return self._json([{"type": "file", "path": f, "oid": s, "size": len(files[f])} for f, s in sums.items()])
        if kind == "resolve":
            data = files[parts[4]]
            return self._send(200, data, {"X-Repo-Commit": sha, "ETag": f'"{hashlib.sha1(data).hexdigest()}"'})
        return self._json({"id": name, "sha": sha, "siblings": [{"rfilename": file} for file in files]})

    def _missing(self, code):
        self._send(404, b"", {"X-Error-Code": code, "X-Error-Message": code})

    def _json(self, content):
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _send(self, status, content, headers):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def running_hub():
    """Serve an empty hub."""
    with Hub() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(timeout=10)
