"""Errors that a user can correct. The command line prints such an error as one line and exits with 2.

Any other exception that reaches the user is a defect of the program.
"""

import re

hidden: dict[str, str] = {}
"""Part of a typed address with a possible secret -> the part without the secret, as messages show the part."""
_LONGEST, _KEPT = 255, 80  # characters of the longest unshortened word, and of a shortened word
_LONG = re.compile(rf"`(?:aadml|hf) [^`]*`|\S{{{_LONGEST + 1},}}|(?<!\w)'[^']{{{_KEPT + 1},}}'(?!\w)")


class AadmlError(Exception):
    """Base class of the errors of aadml."""


class InputError(AadmlError, ValueError):
    """Error for invalid input: the message contains the problem, the invalid value, and the remedy.

    The command line prints the message as one line and exits with 2. Unprintable characters are escaped, and long
    values are shortened to 80 characters.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class DamagedFileError(InputError):
    """Error for a file that is damaged, truncated, malicious, or changed since it was written."""


class InUseError(InputError):
    """Error for files that another process is writing, or for a lock file that an ended process left behind."""


class UntrustedCodeError(InputError):
    """Error raised if a file names external code that the user has not consented to run."""


class MissingExtraError(InputError):
    """Error for an optional package that is not installed or cannot be imported."""

    @classmethod
    def of(cls, user: str, package: str, extra: str) -> "MissingExtraError":
        """Return the error for a package that is not installed.

        Args:
            user: subject of the message, such as the name of an extractor.
            package: name of the package.
            extra: argument of `pip install` that installs the package ("aadml[hub]").
        """
        return cls(f"{user} needs {package}, which is not installed; run pip install '{extra}'")


def cause(error: BaseException) -> str:
    """Return the first nonblank line of an error's text, at most 300 characters; the class name for a blank text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def one_line(text: str) -> str:
    """Return a text with unprintable characters escaped and long parts shortened.

    The secrets of `hidden` are left out. A quoted value of more than 80 characters, or a word of more than 255
    characters, is shortened to 80 characters.
    A command of `aadml` or `hf` in backticks is not shortened, so that a user can run the command.
    """
    printable = [c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in without_secrets(text)]
    return _LONG.sub(lambda found: _shortened(found[0]), "".join(printable))


def without_secrets(text: str) -> str:
    """Return a text without the secrets of `hidden`."""
    for part in sorted(hidden, key=len, reverse=True):  # a part may contain another
        text = text.replace(part, hidden[part])
    return text


def _shortened(text: str) -> str:
    return text if text.startswith("`") else f"{text[: _KEPT - 23]}...{text[-20:]}"
