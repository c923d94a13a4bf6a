"""What a job notes in its ledger about itself, so that others can see how far it is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ledger.records import NOTE, content_of, key_of_line


@dataclass(frozen=True)
class Beginning:
    """A process began, or went on with, a job.

    Attributes:
        at: seconds since 1970.
        clips: that the job has.
        command: with which it goes on after an interruption; empty if it was begun in Python.
        folder: in which the command was given.
    """

    at: float
    clips: int
    command: str = ""
    folder: str = ""


@dataclass(frozen=True)
class Progress:
    """How far a process is.

    Attributes:
        at: seconds since 1970.
        done: clips done, those that failed and those that were known among them.
        reused: clips that needed no work, as the ledger had them.
        failed: reason -> clips.
        finished: whether the feature file has been written.
    """

    at: float
    done: int
    reused: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    finished: bool = False


Note = Beginning | Progress
_KINDS: dict[str, type[Beginning] | type[Progress]] = {"beginning": Beginning, "progress": Progress}


def content_of_note(note: Note) -> JsonObject:
    """Give what the line of a note says."""
    kind = "beginning" if isinstance(note, Beginning) else "progress"
    return {kind: dict(vars(note))}


def notes_of(records: Path) -> Iterator[Note]:
    """Read the notes in a ledger's file of records, which may be in use; damaged ones are left out."""
    wanted = b" %016x " % NOTE
    with records.open("rb") as file:
        for line in file:
            if line[8:26] == wanted and line.endswith(b"\n") and key_of_line(line) == NOTE:
                yield from _note(content_of(line))


def _note(content: JsonObject) -> Iterator[Note]:
    for kind, made in _KINDS.items():
        values = content.get(kind)
        if isinstance(values, dict):
            try:
                yield made(**values)
            except TypeError:  # of another version of the program
                return
