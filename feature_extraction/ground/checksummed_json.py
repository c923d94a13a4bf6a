"""JSON files that carry their own checksum, and the checksums by which other files are known."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject

CHECKSUM = "checksum"


@dataclass(frozen=True)
class FileSum:
    """What a file must hold.

    Attributes:
        size: in bytes.
        sha256: of its content.
    """

    size: int
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> "FileSum":
        """Take the sum of `data`."""
        return cls(len(data), hashlib.sha256(data).hexdigest())

    def check(self, data: bytes, place: Path) -> None:
        """Compare `data`, read from `place`, with what it must be.

        Raises:
            InputError: it differs.
        """
        if len(data) != self.size:
            raise InputError(f"{place}: damaged: {len(data)} bytes, {self.size} were written")
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise InputError(f"{place}: damaged or changed: its SHA-256 is not that of what was written")


def seal(content: JsonObject) -> bytes:
    """Write a JSON object whose last key is the SHA-256 of all the others."""
    return (json.dumps({**content, CHECKSUM: _digest(content)}, indent=2, ensure_ascii=False) + "\n").encode()


def unseal(data: bytes, place: Path) -> dict[str, Json]:
    """Read what `seal` wrote.

    Args:
        data: the bytes.
        place: where they were read, for the message.

    Raises:
        InputError: no JSON object, or one whose checksum does not fit.
    """
    try:
        content = json.loads(data)
        found = content.pop(CHECKSUM)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(f"{place}: damaged: not a JSON object with a checksum") from error
    if found != _digest(content):
        raise InputError(f"{place}: damaged or changed: its checksum does not fit its content")
    assert isinstance(content, dict)
    return content


def read_sealed(path: Path, form: str, version: int) -> dict[str, Json]:
    """Read a sealed file of a format.

    Raises:
        FileNotFoundError: there is none (or NotADirectoryError); who asks knows what its folder is instead.
        InputError: it cannot be read, is damaged, or is of another format or version.
    """
    try:
        content = unseal(path.read_bytes(), path)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if (content.get("format"), content.get("version")) != (form, version):
        found = f"{content.get('format')} version {content.get('version')}"
        raise InputError(f"{path}: is of {found}; this aadml reads {form} version {version}")
    return content


def _digest(content: JsonObject) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode(errors="replace")).hexdigest()
