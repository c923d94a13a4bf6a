"""Where new runs go, and how their later evaluations are called."""

import time
from pathlib import Path

from feature_extraction.ground.errors import InputError

EVALUATIONS = "evaluations"


def new_run_folder(runs: Path, label: str, seed: int) -> Path:
    """Make an empty folder for a run, named by time, what is trained, and seed.

    Raises:
        InputError: `runs` cannot be written.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        folder = runs / (f"{stamp}-{label}-seed{seed}" + (f"-{number}" if number else ""))
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if not runs.is_dir():
                raise InputError(f"{runs}: is a file; --runs wants a folder") from None
            continue
        except OSError as error:
            raise InputError(
                f"{folder}: cannot be made ({error.strerror}); choose another place with --runs"
            ) from error
        return folder
    raise InputError(f"{runs}: a thousand runs of this second are there already")


def file_of(protocol: str, split: str, *changed: str) -> str:
    """Name the file that keeps a further evaluation in its run; what was scored otherwise is part of the name."""
    return f"{EVALUATIONS}/{'-'.join([protocol.replace(':', '-'), split, *changed])}.json"
