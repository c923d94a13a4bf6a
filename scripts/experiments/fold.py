"""Take finished rows of the experiment from other folders into docs/experiments, and write its page anew.

Usage: scripts/experiments/fold.py FOLDER...; without a folder the page alone is written. The same as `aadml reproduce
plan --merge`, for folders that lie elsewhere.
"""

import sys
from pathlib import Path

from aadml.reports.plan.page import write_plan_page
from aadml.sweeps.plan.ledger import Ledger
from aadml.sweeps.plan.sets import keep_facts, read_facts
from aadml.sweeps.plan.stages import STAGES

HERE = Path(__file__).parents[2] / "docs" / "experiments"


def fold(folder, others):
    for other in others:
        keep_facts(folder, read_facts(other))
    Ledger((folder, *others)).absorb(list(STAGES))
    return write_plan_page(folder)


if __name__ == "__main__":
    print(fold(HERE, [Path(name) for name in sys.argv[1:]]))
