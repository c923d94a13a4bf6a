"""Downloads against a server on this machine that breaks off, lies and vanishes as told."""

import hashlib
import json
import logging
import re
import threading

import pytest
import torch

from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.weights import table as weights
from aadml.feature_extraction.weights.download import download
from aadml.feature_extraction.weights.resolve import load_weights
from aadml.feature_extraction.weights.table import WEIGHTS, recognize, verify, weights_folder, weights_path
from aadml.feature_extraction.weights.tensor_files import write_tensors
from tests.feature_extraction.weights.toy_server import CONTENT, leftovers, toy


def test_a_file_is_fetched_once_verified_and_kept(server):
    path = weights_path("toy")
    assert path.read_bytes() == CONTENT
    assert weights_path("toy") == path
    assert server.asked == ["/toy.bin"]
    assert leftovers() == ["checksums.json", "toy.bin"]
    assert json.loads((path.parent / "checksums.json").read_text()) == {"toy.bin": hashlib.sha256(CONTENT).hexdigest()}


def test_a_connection_that_breaks_leaves_nothing_and_the_next_call_starts_again(server):
    server.breaks = [300_000]
    with pytest.raises(
        InputError, match=r"the connection broke 724,000 bytes before the end; run the same command again"
    ):
        weights_path("toy")
    assert leftovers() == []
    assert weights_path("toy").read_bytes() == CONTENT
    assert leftovers() == ["checksums.json", "toy.bin"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": "00000000"}, r"its sha256 is [0-9a-f]{64}, not the published 00000000"),
        ({"md5": "0" * 32}, r"its md5 is [0-9a-f]{32}, not the published 0{32}"),
    ],
)
def test_what_is_not_the_published_file_is_discarded(server, changes, message):
    toy(**changes)
    with pytest.raises(DamagedFileError, match=message) as caught:
        weights_path("toy")
    assert "\n" not in str(caught.value)
    assert leftovers() == []


def test_without_connection_one_error_names_file_address_and_folder(server):
    toy(url="http://127.0.0.1:9/toy.bin")
    with pytest.raises(InputError) as caught:
        weights_path("toy")
    assert str(caught.value) == (
        f"toy: the file toy.bin is not in {weights_folder()} and was not downloaded "
        "(http://127.0.0.1:9/toy.bin: the connection failed (Connection refused); check the network); "
        "download the file from http://127.0.0.1:9/toy.bin and run `aadml weights get toy --from FOLDER` with its "
        "folder"
    )
    assert leftovers() == []


@pytest.mark.parametrize("status", [404, 503])
def test_a_server_that_does_not_send_the_file_is_named(server, status):
    server.status = status
    with pytest.raises(
        InputError, match=rf"the server did not send the file \(status {status}, .*\); check the address"
    ):
        weights_path("toy")
    assert leftovers() == []


def test_a_file_put_there_by_hand_is_used_without_connection(server):
    toy(url="http://127.0.0.1:9/toy.bin")
    weights_folder().mkdir(parents=True)
    (weights_folder() / "toy.bin").write_bytes(CONTENT)
    assert weights_path("toy").read_bytes() == CONTENT
    (weights_folder() / "toy.bin").write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(InputError, match="not the published"):
        weights_path("toy")


def test_a_file_without_published_checksum_is_trusted_once_and_compared_ever_after(server, caplog):
    toy(sha256=None)
    with caplog.at_level(logging.WARNING):
        path = weights_path("toy")
    assert "the file is trusted at first use, and its SHA-256 is recorded" in caplog.text
    caplog.clear()
    assert verify("toy") == hashlib.sha256(CONTENT).hexdigest()
    assert not caplog.text
    path.write_bytes(b"another")
    digests = [hashlib.sha256(data).hexdigest()[:16] for data in (b"another", CONTENT)]
    with pytest.raises(InputError) as caught:
        weights_path("toy")
    assert str(caught.value) == (
        f"{path}: its SHA-256 is {digests[0]}..., but was {digests[1]}... at first use; restore the earlier "
        f"file, or accept the change by deleting the line of the file in {path.parent / 'checksums.json'}"
    )


def test_a_file_is_copied_from_a_folder_and_verified_first(server, tmp_path, caplog):
    cache = weights_folder()
    with pytest.raises(InputError) as caught:
        weights_path("toy", tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'toy.bin'} does not exist; download the file from {WEIGHTS['toy'].url} into {tmp_path}"
    )
    (tmp_path / "toy.bin").write_bytes(CONTENT[1:])
    with pytest.raises(DamagedFileError, match="not the published"):
        weights_path("toy", tmp_path)
    assert not cache.exists() or leftovers() == []
    (tmp_path / "toy.bin").write_bytes(CONTENT)
    assert weights_path("toy", tmp_path).read_bytes() == CONTENT
    (tmp_path / "a.bin").write_bytes(CONTENT)
    toy(file="a.bin", md5=hashlib.md5(CONTENT).hexdigest(), sha256=None)
    weights_path("toy", tmp_path)
    assert list(json.loads((cache / "checksums.json").read_text())) == ["a.bin", "toy.bin"]
    assert server.asked == []
    assert caplog.text == ""
    (cache / "checksums.json").unlink()
    assert recognize("0" * 64, cache / "a.bin") == "toy"
    assert recognize("0" * 64, cache) is None


@pytest.mark.parametrize(("text", "problem"), [("{", "is not JSON (Expecting"), ("[]", "is not a JSON object; ")])
def test_damaged_records_of_checksums_are_an_error(server, text, problem):
    weights_folder().mkdir(parents=True)
    (weights_folder() / "checksums.json").write_text(text)
    with pytest.raises(DamagedFileError, match=rf"{re.escape(problem)}.* or delete the file, so that checksums are"):
        weights_path("toy")


def test_the_facts_that_a_download_is_checked_against_are_listed(server):
    newest = "the address is of the newest revision, not of a fixed one"
    for changes, expected in (
        ({"sha256": None}, "no published checksum"),
        ({"sha256": "0" * 64}, "the SHA-256"),
        (
            {"sha256": "0" * 8, "md5": "1"},
            "the MD5 of the publisher and the first 8 digits of the SHA-256",
        ),
        ({"sha256": None, "url": "https://hub/a/resolve/main/b"}, f"the MD5 of the publisher; {newest}"),
    ):
        toy(**changes)
        assert WEIGHTS["toy"].check == expected


def test_a_cache_that_cannot_be_written_is_good_enough_to_read(server, caplog, monkeypatch):
    toy(sha256=None)
    weights_folder().mkdir(parents=True)
    (weights_folder() / "toy.bin").write_bytes(CONTENT)

    def read_only(path, text):
        raise InputError(f"{path} cannot be written (Read-only file system)")

    monkeypatch.setattr(weights, "write_text", read_only)
    assert weights_path("toy").read_bytes() == CONTENT
    assert "checksums.json cannot be written" in caplog.text


def test_several_that_want_the_same_file_have_it_whole(server):
    paths = []
    threads = [threading.Thread(target=lambda: paths.append(weights_path("toy"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.read_bytes() == CONTENT for path in paths] == [True] * 3
    assert leftovers() == ["checksums.json", "toy.bin"]


def test_a_file_to_download_by_hand_is_an_error_with_its_page(server):
    toy(direct=False, url="https://example.org/page")
    with pytest.raises(
        InputError, match=r"org/page is a page for downloads, .*\); download the file from https://example.org/page"
    ):
        weights_path("toy")
    assert server.asked == []


def test_only_web_addresses_are_fetched(tmp_path):
    with pytest.raises(InputError, match="not an http or https address"):
        download("file:///etc/passwd", tmp_path / "x", check=lambda part: None)


def test_a_folder_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(InputError, match=r"cache/weights/toy.bin cannot be written"):
        weights_path("toy")


def test_an_unknown_name_is_answered_with_the_nearest(server):
    with pytest.raises(InputError, match="did you mean 'vggish-pca'"):
        weights_path("vgish-pca")


def test_ones_own_file_is_read_as_it_is_and_told_by_its_checksum(server, tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "own.pth")
    found = load_weights(str(tmp_path / "own.pth"), "vggish")
    assert torch.equal(found.tensors["a"], torch.ones(2))
    digest = hashlib.sha256((tmp_path / "own.pth").read_bytes()).hexdigest()
    assert (found.sha256, found.name) == (digest, "own.pth")
    assert found.published is None
    assert (weights_folder() / "converted" / f"{digest}.safetensors").is_file()
    with pytest.raises(InputError, match=r"weights mine.pth is neither a file nor the name of a published file"):
        load_weights("mine.pth", "vggish")


def test_auto_is_the_default_of_the_table(server, tmp_path):
    write_tensors(tmp_path / "toy.safetensors", {"a": torch.ones(2)})
    server.content = (tmp_path / "toy.safetensors").read_bytes()
    toy(file="toy.safetensors", sha256=None)
    for choice in ("auto", "toy"):
        found = load_weights(choice, "toy")
        assert found.tensors.keys() == {"a"}
        assert found.published == "toy"
        assert found.sha256 == hashlib.sha256(server.content).hexdigest()


def test_the_table_says_where_every_file_is_and_under_which_license():
    assert [name for name, entry in WEIGHTS.items() if not entry.direct] == ["word2vec"]
    files = [entry.file for entry in WEIGHTS.values()]
    assert len(set(files)) == len(files)
    for entry in WEIGHTS.values():
        assert entry.url.startswith("https://")
        assert entry.license
        assert entry.citation
        assert entry.purpose
        assert entry.md5 is None or len(entry.md5) == 32
        assert entry.sha256 is None or set(entry.sha256) <= set("0123456789abcdef")


def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "a"))
    assert weights_folder() == tmp_path / "a" / "weights"
    monkeypatch.delenv("AADML_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert weights_folder() == tmp_path / "c" / "aadml" / "weights"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(weights.Path, "home", lambda: tmp_path / "d")
    assert weights_folder() == tmp_path / "d" / ".cache" / "aadml" / "weights"


def test_without_a_home_the_variable_that_names_the_cache_is_named(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    for name in ("AADML_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(weights.Path, "home", homeless)
    with pytest.raises(InputError, match="AADML_CACHE"):
        weights_folder()
