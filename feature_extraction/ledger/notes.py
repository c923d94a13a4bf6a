"""Notes of a job about its progress, in its ledger."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ledger.records import NOTE, content_of, key_of_line


@dataclass(frozen=True)
class Beginning:
    """Start or continuation of a job by a process.

    Attributes:
        at: time in seconds since 1970.
        clips: number of clips of the job.
        command: command that continues the job after an interruption; "" if it was started from Python.
        folder: working directory of the command.
    """

    at: float
    clips: int
    command: str = ""
    folder: str = ""


@dataclass(frozen=True)
class Progress:
    """Progress of a process.

    Attributes:
        at: time in seconds since 1970.
        done: number of clips done, including failed and reused clips.
        reused: number of clips taken from the ledger.
        failed: reason -> number of clips.
        finished: whether the feature file has been written.
    """

    at: float
    done: int
    reused: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    finished: bool = False

    @property
    def worked(self) -> int:
        """Number of clips done by the process itself, without reused clips."""
        return self.done - self.reused


Note = Beginning | Progress
_KINDS: dict[str, type[Beginning] | type[Progress]] = {"beginning": Beginning, "progress": Progress}


def content_of_note(note: Note) -> JsonObject:
    """Return the JSON content of a note."""
    kind = "beginning" if isinstance(note, Beginning) else "progress"
    return {kind: dict(vars(note))}


def notes_of(records: Path) -> Iterator[Note]:
    """Yield the notes of a file of records, which may be in use; damaged notes are left out."""
    wanted = b" %016x " % NOTE
    with records.open("rb") as file:
        for line in file:
            if line[8:26] == wanted and line.endswith(b"\n") and key_of_line(line) == NOTE:
                yield from _note(content_of(line))


def _note(content: JsonObject) -> Iterator[Note]:
    for name, kind in _KINDS.items():
        values = content.get(name)
        if isinstance(values, dict):
            with suppress(TypeError):  # a note of another version
                yield kind(**values)
