import json
import sys

import numpy as np
import pytest

from aadml.cli import main


@pytest.fixture(scope="module")
def embeddings_file(tmp_path_factory):
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    path = tmp_path_factory.mktemp("embeddings") / "e.npz"
    views = {m: generator.standard_normal((60, 3)) + np.eye(3)[labels] for m in ("audio", "visual")}
    np.savez(path, **views, label=labels, split=np.repeat(["train", "test"], 30))
    return path


@pytest.fixture
def aadml(monkeypatch, capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["aadml", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return run


def test_json_of_embeddings_made_elsewhere(aadml, embeddings_file):
    code, out, err = aadml("evaluate", "--embeddings", embeddings_file, "--metric", "running", "--json", "--per-query")
    assert code == 0, err
    found = json.loads(out)
    assert (found["protocol"], found["split"]) == ("unstated", "test")
    one = found["directions"]["audio-visual"]
    assert one["queries"] == 30
    assert found["chance"] < one["map"] < one["running_map"] + 1
    assert len(one["per_query"]["average_precision"]) == 30


def test_a_table_for_people_with_classes(aadml, embeddings_file):
    code, out, err = aadml(
        "evaluate", "--embeddings", embeddings_file, "--split", "train", "--by-class", "--protocol", "bank"
    )
    assert code == 0, err
    assert out.startswith("protocol bank, split train, similarity cosine\n")
    assert (
        "aadml: protocol bank describes how the embeddings were computed; the embeddings are scored unchanged\n" in err
    )
    assert "chance level of MAP" in out
    assert out.count("chance\n") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "pass either a run or model folder, or --embeddings FILE"),
        (("--embeddings", "absent.npz"), "absent.npz does not exist"),
        (("--embeddings", "FILE", "--split", "valid"), "no clips of the split 'valid'; choose from test, train"),
        (("--embeddings", "FILE", "--metric", "runing"), "did you mean 'running'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(aadml, embeddings_file, arguments, message):
    code, out, err = aadml("evaluate", *(embeddings_file if a == "FILE" else a for a in arguments))
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert not out
