"""The file of judgments: two servers of one index write it at the same time."""

import csv
import subprocess
import sys

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
