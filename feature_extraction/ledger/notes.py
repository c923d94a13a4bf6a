"""Notes of a job about its progress, in its ledger."""

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path

from aadml.feature_extraction.ledger.records import NOTE, Size, line_of, read_line


@dataclass(frozen=True)
class Beginning:
    """Start or continuation of a job by a process.

    Attributes:
        at: time in seconds since 1970.
        clips: number of clips of the job, or of its shard.
        command: command that continues the job after an interruption; "" for a job started from Python.
        folder: working directory of the command.
        total: number of clips of all shards; 0 in older ledgers.
    """

    at: float
    clips: Size
    command: str = ""
    folder: str = ""
    total: Size = 0


@dataclass(frozen=True)
class Progress:
    """Progress of a job in one process.

    Attributes:
        at: time in seconds since 1970.
        done: number of clips done, including failed and reused clips.
        reused: number of clips taken from the ledger.
        failed: reason -> number of clips.
        finished: whether all files of the job have been written; there is no feature file if every clip failed.
        running: a key of ledgers of earlier versions, which is ignored.
    """

    at: float
    done: Size
    reused: Size = 0
    failed: Mapping[str, Size] = field(default_factory=dict)
    finished: bool = False
    running: InitVar[object] = None

    @property
    def worked(self) -> int:
        """Number of clips done by the process itself, without reused clips."""
        return self.done - self.reused


Note = Beginning | Progress


@dataclass(frozen=True)
class NoteLine:
    """Content of the line of a note.

    Attributes:
        end: size of the file of values in bytes.
        beginning: a note about the start of a process; None for other notes.
        progress: a note about the progress of a process; None for other notes.
    """

    end: Size
    beginning: Beginning | None = None
    progress: Progress | None = None


def line_of_note(note: Note, end: int) -> bytes:
    """Return the line of a note; `end` is the size of the file of values in bytes."""
    line = NoteLine(end, beginning=note) if isinstance(note, Beginning) else NoteLine(end, progress=note)
    return line_of(NOTE, line)


def notes_of(records: Path) -> Iterator[Note]:
    """Yield the intact notes of a file of records, which may be in use.

    Raises:
        OSError: the file cannot be read.
    """
    wanted = b" %016x " % NOTE
    with records.open("rb") as file:
        for line in file:
            content = read_line(NoteLine, line) if line[8:26] == wanted and line.endswith(b"\n") else None
            note = content and (content.beginning or content.progress)
            if note:
                yield note
