"""Errors that a user can correct. The command line prints them as one line and exits with 2.

Any other exception that escapes is a defect of the program.
"""


class AadmlError(Exception):
    """Base class of the errors of aadml."""


class InputError(AadmlError, ValueError):
    """Invalid input: the message contains what is wrong, what was given, and what to do."""


class DamagedFileError(InputError):
    """A file is damaged, truncated, malicious, or changed since it was written."""


class InUseError(InputError):
    """Another process is writing the same run, index, study or extraction."""


class UntrustedCodeError(InputError):
    """External code is named by a file, without consent."""


class MissingExtraError(InputError):
    """An optional package is not installed."""

    @classmethod
    def of(cls, user: str, package: str, extra: str) -> "MissingExtraError":
        """Return the error of a feature `user` that needs a package; `extra` is what to install ("aadml[hub]")."""
        return cls(f"{user} needs {package}, which is not installed: pip install '{extra}'")
