"""The one error a user can mend."""

import re

_LONGEST, _KEPT = 255, 80  # characters of a word, and of what is left of a longer one
_LONG = re.compile(rf"\S{{{_LONGEST + 1},}}|(?<!\w)'[^']{{{_KEPT + 1},}}'(?!\w)")


class InputError(ValueError):
    """Something given to the program is wrong: the message says what was given, what is possible, and where.

    The command line prints it as one line and exits with 2; anything else that escapes is a defect of the program.
    Characters that cannot be printed are escaped, and long values are shortened to 80 characters.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """Return a text with unprintable characters escaped; quoted values and very long words are shortened."""
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return _LONG.sub(lambda long: f"{long[0][: _KEPT - 23]}...{long[0][-20:]}", escaped)
