"""Comparison of every line of a ledger, and of the values of every record, with their checksums."""

from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ledger.ledger import RECORDS, VALUES
from aadml.feature_extraction.ledger.records import Record, key_of_line, read_line


def damages_of_ledger(folder: Path) -> list[str]:
    """Check the ledger of a work folder, which may be in use.

    Args:
        folder: the folder `<output>.work`.

    Returns:
        A message for each damaged line or record. An unfinished last line does not count as damage.

    Raises:
        InputError: the folder cannot be read.
    """
    damages = []
    try:
        with (folder / RECORDS).open("rb") as lines, (folder / VALUES).open("rb") as values:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n") and b"\0" not in line:
                    break  # unfinished line of a killed process
                place = f"{folder / RECORDS}: line {number}"
                record = read_line(Record, line)
                if key_of_line(line) is None:
                    damages.append(
                        f"{place} does not match its checksum; the next extraction repeats the work of this line"
                    )
                elif record is not None and record.block is not None and record.block.read(values) is None:
                    damages.append(
                        f"{folder / VALUES}: the {record.modality} values of clip {record.id!r} do not match their "
                        "checksum; the next extraction computes them again"
                    )
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}); check the path and its permissions") from error
    return damages
