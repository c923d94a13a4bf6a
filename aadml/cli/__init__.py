"""The command line. Each command is a file of this folder, imported only for this command."""

import importlib
import io
import os
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from aadml.cli.progress import warn
from aadml.cli.terminal import echo
from aadml.comparison.processes.launch import ProcessLost, claim_last_word, one_voice, started
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError, one_line
from aadml.feature_extraction.ground.forwarded_warnings import forward_warnings

COMMANDS = (
    "demo", "sample-data", "manifest", "weights", "extract", "status", "merge", "inspect",
    "convert", "train", "evaluate", "embed", "export", "verify", "audit", "ablate",
    "compare", "reproduce", "report", "index", "search", "serve", "list", "doctor",
)  # fmt: skip
"""Names of the commands, in the order of `aadml --help`."""


def descriptions() -> dict[str, str]:
    """Return the description of each command: the docstring of its file, which is read without an import."""
    import ast

    files = {name: Path(__file__).with_name(f"{name.replace('-', '_')}.py") for name in COMMANDS}
    return {name: ast.get_docstring(ast.parse(file.read_bytes())) or "" for name, file in files.items()}


class LazyGroup(click.Group):
    """Click group that imports only the file of the command that runs, for a fast `--help`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names, in the order of `COMMANDS`."""
        return [*COMMANDS]  # the import of the command `list` rebinds the name `list`

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; return None if the name is unknown."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"aadml.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. If the output pipe is closed, as by `aadml list | head`, exit with status 0."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - flushing the rest must not raise again
            sys.exit(0)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl([*descriptions().items()])  # see list_commands

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Store the command line, and return the name, the command and the remaining arguments.

        Code that the command line names as `module:name` may then be imported.

        Raises:
            UsageError: the command is unknown.
            InputError: an argument is empty or contains a null character.
        """
        from aadml.feature_extraction.ground.registry import suggestion

        _check_arguments(args)
        consent_to(args)  # a typed `module:name` may be imported; a name in a file needs --trust-code
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(f"'{args[0]}' is not a command; {suggestion(args[0], COMMANDS)}", ctx)
        ctx.obj = [*args]  # the import of the command `list` rebinds the name `list`
        return super().resolve_command(ctx, args)


def _check_arguments(arguments: list[str]) -> None:
    """Raise InputError for an argument that is empty or contains a null character, and for "--option=" without a value.

    An unset shell variable leaves an argument empty. Only a program that calls `main` can pass a null character.
    """
    for number, (before, argument) in enumerate(pairwise(arguments), 1):
        if "\0" in argument:
            raise InputError(f"{arguments[0]}: {argument!r:.80} contains a null character; remove the character")
        flag, equals, value = argument.partition("=")
        if not argument:
            place = before if before.startswith("-") else f"argument {number}"
        elif flag.startswith("--") and equals and not value:
            place = flag
        else:
            continue
        raise InputError(f"{arguments[0]}: {place} is empty; pass a value, or omit {place} if {place} is not required")


def _version(context: click.Context, _: click.Parameter, shown: bool) -> None:
    if shown:
        import aadml

        echo(f"aadml, version {aadml.__version__}")
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def cli(context: click.Context) -> None:
    """Audio-visual and audio-text retrieval with Anchor-Aware proxies, under honest protocols.

    A first session: aadml sample-data clips, aadml extract clips/manifest.csv -o clips.h5, aadml train --data clips.h5.
    """
    if started() and context.invoked_subcommand != "train":
        raise InputError(
            f"{context.invoked_subcommand} was started by torchrun, but runs in one process; start the command "
            "without torchrun"
        )


class Interruption:
    """Handler of Ctrl-C and SIGTERM.

    A second signal within `PAUSE` seconds is ignored, so that the cleanup is not interrupted.

    Attributes:
        number: latest signal that was not ignored.
    """

    PAUSE = 3.0

    def __init__(self) -> None:
        self._last = -self.PAUSE
        self.number: int = signal.SIGINT

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt unless the last interruption was less than `PAUSE` seconds ago."""
        now = time.monotonic()
        if now - self._last >= self.PAUSE:
            self._last, self.number = now, number
            raise KeyboardInterrupt


def main(command: click.Command = cli) -> None:
    """Run a command; exit with the status of the command, or with a message and a status after an error.

    After an error, the status is 2 for invalid input or an error of the operating system. The status is 1 if another
    process of a distributed training was lost, 130 after an interruption or a declined confirmation, and 143 after
    SIGTERM, as a scheduler sends it.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # paths are printed with their original bytes
    forward_warnings(warn)
    one_voice()
    interruption = _interruption()
    try:
        code = command(standalone_mode=False)  # the status of an Exit, or None
        if isinstance(code, int):
            sys.exit(code)
    except click.exceptions.Abort as stop:  # raised by click after an interruption
        _exit_interrupted(stop.__cause__, interruption.number)
    except click.UsageError as error:
        from aadml.cli.settings import advice

        hint = advice(error)
        message = f"{error.message.rstrip('.')}; {hint}" if hint else error.format_message()
        click.UsageError(one_line(message), error.ctx).show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except InputError as error:
        _exit(str(error), 2)
    except OSError as error:
        from aadml.feature_extraction.ground.argument_types import in_words

        _exit(one_line(in_words(error)), 2)
    except ProcessLost as error:
        _exit(str(error), 1)
    except KeyboardInterrupt as stop:
        _exit_interrupted(stop, interruption.number)


def _interruption() -> Interruption:
    """Install and return a handler of Ctrl-C and SIGTERM, in place of the default handlers only."""
    interruption = Interruption()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, interruption)
    return interruption


def _exit(message: str, code: int) -> NoReturn:
    """Print a message unless another process of the same job has printed a message. Then exit."""
    if claim_last_word():
        echo(f"aadml: {message}", err=True)
    sys.exit(code)


def _exit_interrupted(cause: BaseException | None, number: int) -> None:
    """Exit with the status of a process that was ended by signal `number`.

    The text of a KeyboardInterrupt is printed, or "no partial output is left" if the text is empty. Nothing is printed
    for other causes, such as a declined confirmation.
    """
    if isinstance(cause, KeyboardInterrupt):
        echo(f"aadml: interrupted; {str(cause) or 'no partial output is left'}", err=True)
    signal.signal(number, signal.SIG_IGN)  # ignored until the interpreter has ended
    sys.exit(128 + number)
