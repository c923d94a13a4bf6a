"""Failures of clips, and the list of failed clips."""

import csv
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from aadml.feature_extraction.ground.atomic import atomic_path
from aadml.feature_extraction.media.inputs import REASONS

ABSENT = {"audio": "no-audio", "visual": "no-video", "text": "no-text"}
"""Modality -> reason of a clip without the modality. Other reasons mean that the modality could not be read."""


@dataclass(frozen=True)
class Failure:
    """Modality without features in a clip, and the reason.

    Attributes:
        id: id of the clip.
        media: path of the file; the text itself for the modality text.
        modality: name of the modality.
        reason: key of `aadml.feature_extraction.media.REASONS`.
        detail: description of the problem.
    """

    id: str
    media: str
    modality: str
    reason: str
    detail: str


def deciding_reason(reasons: Collection[str], modalities: int) -> str:
    """Return the first of the reasons in the order of `REASONS`; "" if the clip is kept.

    A clip is kept if at least one modality has features and every reason is a value of `ABSENT`.

    Args:
        reasons: one reason for each modality that is absent or failed.
        modalities: number of requested modalities.
    """
    if len(reasons) < modalities and set(reasons) <= set(ABSENT.values()):
        return ""
    return min(reasons, key=list(REASONS).index)


def deciding(failures: Sequence[Failure], modalities: int) -> Failure | None:
    """Return the first failure with the deciding reason of a clip; None if the clip is kept. See `deciding_reason`."""
    reason = deciding_reason([failure.reason for failure in failures], modalities)
    return next((failure for failure in failures if failure.reason == reason), None)


def is_list_of_failures(path: Path) -> bool:
    """Return whether a file begins with the header of a list of failures."""
    with path.open("rb") as file:
        return file.read(9) == b"id,media,"


def write_failures(path: Path, failures: Iterable[Failure]) -> None:
    """Write the list of failures as CSV, completely or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    any_bytes = "surrogateescape"  # of media paths
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", errors=any_bytes, newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(field.name for field in fields(Failure))
        table.writerows(map(astuple, failures))
