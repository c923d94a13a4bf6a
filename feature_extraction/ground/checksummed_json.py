"""JSON files that contain a checksum of their content; size and SHA-256 of other files."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.file_content import read_bytes
from aadml.feature_extraction.ground.json_values import JsonObject, parse_object

CHECKSUM = "checksum"


@dataclass(frozen=True)
class FileSum:
    """Expected size and checksum of a file.

    Attributes:
        size: bytes.
        sha256: hexadecimal digest of the content.
    """

    size: int
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> "FileSum":
        """Compute the size and the checksum of `data`."""
        return cls(len(data), hashlib.sha256(data).hexdigest())

    def check(self, data: bytes, place: Path) -> None:
        """Check data that was read from the file `place` against the expected size and checksum.

        Raises:
            InputError: the size or the checksum differs.
        """
        if len(data) != self.size:
            raise DamagedFileError(
                f"{place} is damaged ({len(data)} bytes instead of {self.size}); restore the file from a copy"
            )
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise DamagedFileError(
                f"{place} is damaged or changed, as its SHA-256 differs from that of the written content; "
                "restore the file from a copy"
            )


def seal(content: JsonObject) -> bytes:
    """Return a JSON object as UTF-8 bytes. The added last key, `checksum`, contains the SHA-256 of the object."""
    return (json.dumps({**content, CHECKSUM: _digest(content)}, indent=2, ensure_ascii=False) + "\n").encode()


def unseal(data: bytes, place: Path) -> JsonObject:
    """Return the JSON object in a result of `seal`, without the checksum.

    Args:
        data: content of the file.
        place: path of the file, for messages.

    Raises:
        InputError: `data` is not a JSON object with a matching checksum.
    """
    content = parse_object(data, place)
    if content.pop(CHECKSUM, None) != _digest(content):
        raise DamagedFileError(
            f"{place} is damaged or changed, as its checksum is missing or does not match its content; restore the "
            "file from a copy"
        )
    return content


def read_sealed(path: Path, form: str, version: int) -> JsonObject:
    """Read a result of `seal` from a file, and return the JSON object without the checksum.

    Args:
        path: the file.
        form: expected value of the key `format`.
        version: expected value of the key `version`.

    Raises:
        FileNotFoundError: the file does not exist.
        NotADirectoryError: a parent of the path is a file.
        InputError: the file cannot be read, is damaged, or has another format or version.
    """
    try:
        content = unseal(read_bytes(path), path)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); make the file readable, or restore the file from a copy"
        ) from error
    if (content.get("format"), content.get("version")) != (form, version):
        actual = f"{content.get('format')} version {content.get('version')}"
        raise InputError(
            f"{path} has the format {actual}, but this version of aadml reads {form} version {version}; "
            "use the version of aadml that wrote the file"
        )
    return content


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode(errors="replace")).hexdigest()
