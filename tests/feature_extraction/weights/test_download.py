"""Downloads that break and go on."""

import errno
import fcntl
import os
import threading
from http.client import BadStatusLine, RemoteDisconnected
from urllib.error import URLError

import pytest

from aadml.feature_extraction.ground import locks
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.weights import download
from aadml.feature_extraction.weights.table import weights_folder, weights_path
from tests.feature_extraction.weights.toy_server import CONTENT, leftovers, toy


def broken_off(server, after):
    server.breaks = [after]
    with pytest.raises(InputError, match="the connection broke"):
        weights_path("toy")


@pytest.mark.parametrize("breaks", [[300_000], [1, 2, 3], [700_000, 300_000]])
def test_a_download_that_breaks_goes_on_where_it_was(server, breaks):
    server.tag, server.header = "v1", "ETag" if len(breaks) > 1 else "Last-Modified"
    for after in breaks:
        server.breaks = [after] if len(server.asked) == 0 else [len(CONTENT), after]
        with pytest.raises(InputError, match=r"the connection broke [\d,]+ bytes before the end; run the same"):
            weights_path("toy")
    assert weights_path("toy").read_bytes() == CONTENT
    assert server.asked[-1] == f"/toy.bin bytes={sum(breaks)}-"
    assert leftovers() == ["checksums.json", "toy.bin"]


def test_the_progress_of_a_download_ends_with_its_length(server, monkeypatch):
    shown = []
    monkeypatch.setattr(download.Bar, "show", lambda self, done: shown.append((done, self.total)))
    weights_path("toy")
    assert len(shown) == len(set(shown)) >= 1
    assert shown == sorted(shown)
    assert shown[-1] == (len(CONTENT), len(CONTENT))


@pytest.mark.parametrize("length", [True, False])
def test_a_download_has_a_bar_and_is_on_the_disk_before_it_is_used(server, monkeypatch, length):
    server.length, bars, flushed = length, [], []
    built = download.Bar
    monkeypatch.setattr(
        download, "Bar", lambda *args, **options: bars.append((args, options)) or built(*args, **options)
    )
    monkeypatch.setattr(download, "flush_to_disk", lambda part: flushed.append(part.read_bytes() == CONTENT))
    assert weights_path("toy").read_bytes() == CONTENT
    assert bars == [((len(CONTENT) if length else None, "B", "toy.bin"), {"scaled": True})]
    assert flushed == [True]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RemoteDisconnected("closed"), "the connection failed .closed.; check the network"),
        (TimeoutError(), "the connection failed .TimeoutError.; check the network"),
        (URLError(OSError(errno.ENETDOWN, "Network is down")), "the connection failed .Network is down.; check"),
        (
            OSError(errno.ENOSPC, "No space left"),
            r"toy\.bin cannot be written .No space left.; free some space, or set",
        ),
        (
            OSError(errno.EACCES, "Denied", "part"),
            r"toy\.bin cannot be written .Denied.; free some space, or set AADML",
        ),
        (BadStatusLine("HTTP"), "the connection failed .HTTP.; check the network"),
    ],
)
def test_errors_of_the_network_and_of_the_disk_are_told_apart(server, monkeypatch, error, message):
    def fails(*_):
        raise error

    monkeypatch.setattr(download, "_opened", fails)
    with pytest.raises(InputError, match=message):
        weights_path("toy")


def test_a_process_waits_for_a_download_of_another(server, monkeypatch):
    monkeypatch.setattr(locks, "_GRACE", 0.0)
    weights_folder().mkdir(parents=True)
    other = os.open(weights_folder(), os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    threading.Timer(0.1, os.close, (other,)).start()
    assert weights_path("toy").read_bytes() == CONTENT


def test_another_version_of_the_file_starts_again(server):
    server.tag = "v1"
    server.content = b"old" * 1000
    broken_off(server, 500)
    server.tag, server.content = "v2", CONTENT
    assert weights_path("toy").read_bytes() == CONTENT
    assert server.asked == ["/toy.bin", "/toy.bin"]
    assert leftovers() == ["checksums.json", "toy.bin"]


def test_a_server_that_sends_everything_again_is_believed(server):
    server.tag, server.continues = "v1", False
    broken_off(server, 300_000)
    assert weights_path("toy").read_bytes() == CONTENT
    assert server.asked[-1] == "/toy.bin bytes=300000-"


def test_a_complete_part_of_a_killed_process_is_used(server, monkeypatch):
    server.tag = "v1"
    broken_off(server, 300_000)
    (part,) = weights_folder().glob(".toy.bin.*.part")
    part.write_bytes(CONTENT)
    monkeypatch.setattr(download.Bar, "show", lambda *_: pytest.fail("the file was sent again"))
    assert weights_path("toy").read_bytes() == CONTENT
    assert len(server.asked) == 2


def test_a_part_with_wrong_bytes_is_discarded_and_the_next_call_is_whole(server):
    server.tag = "v1"
    broken_off(server, 300_000)
    (part,) = weights_folder().glob(".toy.bin.*.part")
    part.write_bytes(b"x" * 300_000)
    with pytest.raises(DamagedFileError, match="not the published"):
        weights_path("toy")
    assert leftovers() == []
    assert weights_path("toy").read_bytes() == CONTENT


def test_a_mirror_replaces_the_address_and_its_content_is_checked(server, monkeypatch):
    monkeypatch.setenv("AADML_MIRROR", f"http://127.0.0.1:{server.server_port}/files/")
    toy(url="http://127.0.0.1:9/elsewhere.bin", file="toy=1.bin")
    assert weights_path("toy").read_bytes() == CONTENT
    assert server.asked == ["/files/toy%3D1.bin"]
    weights_path("toy").unlink()
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(DamagedFileError, match="not the published"):
        weights_path("toy")
