"""Forwarding of warnings, so that a program prints them in one form."""

import logging
import warnings
from collections.abc import Callable


class _Forwarding(logging.Handler):
    """Handler that passes messages to the current `warnings.showwarning`."""

    def emit(self, record: logging.LogRecord) -> None:
        warnings.showwarning(record.getMessage(), UserWarning, "", 0)


_FORWARDING = _Forwarding(logging.WARNING)  # a single handler, which the logger adds only once


def forward_warnings(deliver: Callable[[str], None]) -> None:
    """Deliver the warnings of Python and of the logger "aadml" to a function, instead of printing them."""
    warnings.showwarning = lambda message, *_: deliver(str(message))
    logging.getLogger("aadml").addHandler(_FORWARDING)
