"""Add finished rows of the experiment from other folders to docs/lab/experiments, and write its page again.

Usage: python -m scripts.experiments.anchor_aware.fold FOLDER...; without a folder, only the page is written. The result
is that of `--merge` of the experiment, but for folders in any place.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.page import write_plan_page
from scripts.experiments.anchor_aware.sets import keep_facts, read_facts
from scripts.experiments.anchor_aware.stages import STAGES

HERE = Path(__file__).parents[3] / "docs" / "lab" / "experiments"


def fold(folder: Path, others: Sequence[Path]) -> Path:
    """Add the rows of other folders to a folder, and write its page."""
    for other in others:
        keep_facts(folder, read_facts(other))
    Ledger((folder, *others)).absorb(list(STAGES))
    return write_plan_page(folder)


if __name__ == "__main__":
    print(fold(HERE, [Path(name) for name in sys.argv[1:]]))
