import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.cli.list import KINDS

HEAVY = {"torch", "numpy", "scipy", "av", "cv2", "h5py", "sklearn", "yaml"}


def test_listing_imports_neither_torch_nor_any_other_large_package():
    kinds = [kind for kind in KINDS if kind not in ("extractors", "configs")]
    code = (
        "import sys; from click.testing import CliRunner; from aadml.cli import cli\n"
        f"for kind in {kinds!r}: assert CliRunner().invoke(cli, ['list', kind]).exit_code == 0, kind\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_listing_extractors_imports_no_torch():
    code = (
        "import sys; from click.testing import CliRunner; from aadml.cli import cli\n"
        "assert CliRunner().invoke(cli, ['list', 'extractors']).exit_code == 0\n"
        "print(sorted({'torch', 'av', 'cv2'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_has_a_line_and_an_origin(kind):
    entries = json.loads(CliRunner().invoke(cli, ["list", kind, "--json"]).stdout)
    assert entries
    for name, entry in entries.items():
        assert entry["description"], name
        assert entry["from"] == "aadml", name
        assert entry["place"], name
