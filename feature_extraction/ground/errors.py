"""The one error a user can mend."""


class InputError(ValueError):
    """Something given to the program is wrong: the message says what was given, what is possible, and where.

    The command line prints it as one line and exits with 2; anything else that escapes is a defect of the program.
    """
