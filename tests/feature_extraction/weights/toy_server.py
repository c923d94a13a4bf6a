"""A server of one file that breaks off, lies and continues as told, and the entry `toy` of the table."""

import hashlib
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

from aadml.feature_extraction.weights.table import WEIGHTS, weights_folder

CONTENT = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serve `server.content` for every path.

    Attributes of the server: `tag` is the value of `header`, None for none; `length` tells whether the length is sent;
    `continues` tells whether ranges are honored; `breaks`
    lists after how many bytes the next answers end; `asked` collects paths and ranges.
    """

    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(self.path if wanted is None else f"{self.path} {wanted}")
        if server.status != 200:
            self.send_error(server.status)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.continues else 0
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if server.length:
            self.send_header("Content-Length", str(len(body)))
        if server.tag is not None:
            self.send_header(server.header, server.tag)
        cut = server.breaks.pop(0) if server.breaks else len(body)  # before a client may ask again
        self.end_headers()
        try:
            self.wfile.write(body[:cut])
        except (BrokenPipeError, ConnectionResetError):  # a client that only wanted the headers
            self.close_connection = True

    def log_message(self, *arguments):
        pass


def toy(**changes):
    WEIGHTS["toy"] = replace(WEIGHTS["toy"], **changes)


def leftovers():
    """Return the files of the cache."""
    return sorted(file.name for file in weights_folder().iterdir())
