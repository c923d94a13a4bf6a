"""The file of judgments: two servers of one index write it at the same time."""

import csv
import subprocess
import sys

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.search.judgments_file import JudgmentsFile

RECORD = """
import sys
from pathlib import Path
from aadml.search.judgments_file import JudgmentsFile
file = JudgmentsFile(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(100):
    file.record(sys.argv[2], f"clip {number}", fits=True)
"""


def test_two_servers_lose_no_judgment_of_each_other(tmp_path):
    path = tmp_path / "clips.judgments.csv"
    words = [sys.executable, "-c", RECORD, str(path)]
    servers = [
        subprocess.Popen([*words, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "ab"
    ]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    for server in servers:
        server.stdin.write("go\n")
        server.stdin.flush()
    for server in servers:
        server.communicate(timeout=120)
        assert server.returncode == 0
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 201


def test_a_file_has_up_to_a_hundred_thousand_judgments(tmp_path):
    path = tmp_path / "j.csv"
    path.write_text("query,item,grade\n" + "".join(f"q,{n},1\n" for n in range(99_999)))
    assert JudgmentsFile(path).record("q", "last", fits=False) == 100_000
    with pytest.raises(
        InputError, match="contains 100000 judgments already; move the file, so that a new file is written"
    ):
        JudgmentsFile(path).record("q", "one more", fits=True)
    assert path.read_text().endswith("\nq,last,0\n")


def test_a_file_has_a_largest_number_of_judgments_and_of_characters_of_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr("aadml.search.judgments_file.MOST", 2)
    file = JudgmentsFile(tmp_path / "j.csv")
    assert [file.record("q", item, fits=True) for item in ("a", "i" * 500, "a")] == [1, 2, 2]
    for item, says in (("b", "contains 2 judgments already"), ("i" * 501, f"'{'i' * 80}' cannot be the name")):
        with pytest.raises(InputError, match=says):
            file.record("q", item, fits=True)
    with pytest.raises(InputError, match=r"j.csv.lock cannot be written \(.*\); check the permissions of the"):
        JudgmentsFile(tmp_path / "none" / "j.csv").record("q", "a", fits=True)


@pytest.mark.parametrize("name", ["j.csv", "j.csv.lock"])
def test_judgments_are_not_written_through_a_link(tmp_path, name):
    (tmp_path / name).symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match=f"{name} is a symbolic link"):
        JudgmentsFile(tmp_path / "j.csv").record("q", "a", fits=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
