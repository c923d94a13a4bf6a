"""Names of run folders and of the files in them."""

import hashlib
import re
import time
from pathlib import Path

from aadml.feature_extraction.ground.atomic import refuse_address
from aadml.feature_extraction.ground.errors import InputError

LONGEST = 100
EVALUATIONS = "evaluations"
"""Folder of the evaluations of a run that were added later."""


def file_name(text: str) -> str:
    """Return a file name of at most 109 characters of `[A-Za-z0-9._-]`. Different texts have different names.

    Each `=` becomes `--`, and each sequence of other characters outside this set becomes `-`. A name of more than
    100 characters is cut to 100 characters and extended by a hash. A hash is also appended if the text is empty,
    has a character replaced by `-`, contains `--` or `-=`, or begins or ends with `-`, `.` or `=`.
    """
    written = text.replace("=", "--")
    plain = re.sub("[^A-Za-z0-9._-]+", "-", written).strip("-.")
    if plain and plain == written and len(plain) <= LONGEST and not re.search("--|-=", text):
        return plain
    return f"{plain[:LONGEST]}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}".lstrip("-")


def new_run_folder(runs: Path, label: str, seed: int) -> Path:
    """Create an empty folder for a run, named by time, label and seed.

    Raises:
        InputError: the folder is an address or cannot be created.
    """
    refuse_address(runs)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        folder = runs / (f"{stamp}-{file_name(label)}-seed{seed}" + (f"-{number}" if number else ""))
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if not runs.is_dir():
                raise InputError(f"{runs} is not a folder; pass a folder to --runs") from None
            continue
        except OSError as error:
            raise InputError(
                f"{folder} cannot be created ({error.strerror}); choose another folder with --runs"
            ) from error
        return folder
    raise InputError(
        f"{runs} already contains a thousand runs started in this second; choose another folder with --runs"
    )


def evaluation_file(protocol: str, split: str, *changed: str) -> str:
    """Return the file name of an evaluation in its run, composed of protocol, split and changed options."""
    return f"{EVALUATIONS}/{file_name('-'.join([protocol, split, *changed]))}.json"
