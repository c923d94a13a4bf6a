"""Clips that cannot be described, and clips that merely lack a modality: which is which, and the list of the first."""

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from aadml.feature_extraction.feature_file import Incomplete
from aadml.feature_extraction.ground.atomic import atomic_path
from aadml.feature_extraction.media import REASONS

ABSENT = {"audio": "no-audio", "visual": "no-video", "text": "no-text"}
"""By modality, the reason that says that a clip never had it; all other reasons say that it could not be read."""


@dataclass(frozen=True)
class Failure:
    """A modality of a clip that is absent from the features, and with it, as a rule, the clip.

    Attributes:
        id: of the clip.
        media: the file at fault.
        modality: that could not be had.
        reason: a key of `aadml.feature_extraction.media.REASONS`.
        detail: what was seen.
    """

    id: str
    media: str
    modality: str
    reason: str
    detail: str


def deciding_reason(reasons: Collection[str], modalities: int, incomplete: Incomplete) -> str:
    """Give the reason for which a clip is left out, the one that stands first in `REASONS`; empty where it is kept.

    Args:
        reasons: one for each modality that could not be had.
        modalities: how many were wanted.
        incomplete: whether a clip that has one of them, and never had the others, is kept.
    """
    lacks_some = len(reasons) < modalities and set(reasons) <= set(ABSENT.values())
    if not reasons or (incomplete == "keep" and lacks_some):
        return ""
    return min(reasons, key=list(REASONS).index)


def deciding(found: Sequence[Failure], modalities: int, incomplete: Incomplete) -> Failure | None:
    """Give the failure for which a clip is left out; None where it is kept. See `deciding_reason`."""
    reason = deciding_reason([one.reason for one in found], modalities, incomplete)
    return next((one for one in found if one.reason == reason), None)


def is_list_of_failures(path: Path) -> bool:
    """Tell whether a file looks like such a list."""
    with path.open("rb") as file:
        return file.read(9) == b"id,media,"


def write_failures(path: Path, failures: Iterable[Failure]) -> None:
    """Write the list of failures as CSV, whole or not at all."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(field.name for field in fields(Failure))
    table.writerows(astuple(failure) for failure in failures)
    with atomic_path(path) as temporary:  # names of media are bytes, as the system has them
        temporary.write_bytes(text.getvalue().encode("utf-8", errors="surrogateescape"))
