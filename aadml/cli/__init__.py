"""The command line: parse, call, print. Each command is a file of this folder, imported only when it is called."""

import importlib
import os
import signal
import sys
import time
import warnings
from itertools import pairwise
from types import FrameType
from typing import NoReturn

import click

from aadml.comparison.processes.launch import ProcessLost, claim_last_word, one_voice, started
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError

COMMANDS = {
    "demo": "A first session: sample clips, features, a model, its score and page, an index to ask.",
    "sample-data": "Render the sample clips (real MP4 files with sound) and their manifest.",
    "manifest": "List the media of a data set (AVE, VEGAS, one folder per class) as a manifest.",
    "extract": "Turn a manifest of media into a feature file.",
    "status": "Show how far an extraction job is: progress, rate, time left, failures.",
    "merge": "Join the shards of one extraction job after checking that none is missing.",
    "inspect": "Describe the contents of a feature file in any layout.",
    "convert": "Turn any supported layout into a feature file.",
    "train": "Train a method on a feature file; the last line printed is the run folder.",
    "evaluate": "Score a run, or embeddings made elsewhere, under a named protocol.",
    "embed": "Write the embeddings of a feature file.",
    "verify": "Check every file of a run or a model against its checksum.",
    "audit": "Check whether embeddings depend on labels, partners, batch or order, with evidence.",
    "ablate": "Run a grid over config keys and seeds; table, curves with spread, significance.",
    "compare": "Compare methods, and losses with and without the proxy, next to the published figures.",
    "reproduce": "Train a paper's tables and figures on its data sets; one page beside what was published.",
    "report": "Write a self-contained HTML page about a run.",
    "index": "Make a searchable index of clips, or bring one up to date.",
    "search": "Ask an index with a sound, a picture, a clip or words.",
    "serve": "Open a local page to ask an index from.",
    "list": "List losses, proxies, selections, methods, extractors, datasets, protocols, metrics.",
    "doctor": "Show what is installed, which weights are present, and whether their self-tests pass.",
}


class LazyGroup(click.Group):
    """A click group that imports a command's file only when that command runs, so that `--help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of a session."""
        return [*COMMANDS]  # `list` may be the module of that command here

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"aadml.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; one whose output nobody reads to the end (`aadml list | head`) did not fail."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _leave_quietly()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and keep what was typed; an unknown one is answered with the nearest name."""
        from aadml.feature_extraction.ground.registry import suggestion

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(f"no command '{args[0]}'; {suggestion(args[0], COMMANDS)}", ctx)
        _refuse_empty(args)
        consent_to(args)  # `module:name` that a person types is imported; one that a file names needs --trust-code
        ctx.obj = [*args]  # `list` may be the module of that command here
        return super().resolve_command(ctx, args)


def _refuse_empty(arguments: list[str]) -> None:
    """Refuse an empty argument, as of a shell variable that is not set: an empty path would be the current folder.

    Raises:
        InputError: says where it stands.
    """
    for number, (before, argument) in enumerate(pairwise(arguments), 1):
        flag, equals, value = argument.partition("=")
        if not argument:
            place = before if before.startswith("-") else f"argument {number}"
        elif flag.startswith("--") and equals and not value:
            place = flag
        else:
            continue
        raise InputError(f"{arguments[0]}: {place} is empty; give a value, or leave it out")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="aadml", prog_name="aadml")
@click.pass_context
def cli(context: click.Context) -> None:
    """Audio-visual and audio-text retrieval with Anchor-Aware proxies, under honest protocols.

    A first session: aadml sample-data clips, aadml extract clips/manifest.csv -o clips.h5, aadml train --data clips.h5.
    """
    if started() and context.invoked_subcommand != "train":
        raise InputError(f"{context.invoked_subcommand}: runs in one process; only train takes torchrun")


class Interruption:
    """A handler of Ctrl-C that interrupts once: pressed again at once, it must not interrupt the tidying up."""

    PAUSE = 3.0

    def __init__(self) -> None:
        self._last = -self.PAUSE

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Interrupt, unless that was done less than `PAUSE` seconds ago."""
        now = time.monotonic()
        if now - self._last >= self.PAUSE:
            self._last = now
            raise KeyboardInterrupt


def main(command: click.Command = cli) -> None:
    """Run a command; a wrong input is one line and exit code 2, an interruption exit code 130."""
    warnings.showwarning = lambda message, *_: click.echo(f"aadml: warning: {message}", err=True)
    one_voice()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, Interruption())
    try:
        code = command(standalone_mode=False)  # click returns the code of an Exit here, and None otherwise
        if isinstance(code, int):
            sys.exit(code)
    except click.exceptions.Abort as stop:  # click makes it of an interruption
        _say_interrupted(stop.__cause__)
        _leave_interrupted()
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except InputError as error:
        _last_word(" ".join(str(error).split()))
        sys.exit(2)
    except ProcessLost as error:
        _last_word(str(error))
        sys.exit(1)
    except KeyboardInterrupt as stop:
        _say_interrupted(stop)
        _leave_interrupted()


def _last_word(message: str) -> None:
    """Say why this process ends, unless another one of its job did."""
    if claim_last_word():
        click.echo(f"aadml: {message}", err=True)


def _say_interrupted(cause: BaseException | None) -> None:
    """Say that a command was interrupted, and what it knows about how to go on."""
    if isinstance(cause, KeyboardInterrupt):
        click.echo(f"aadml: interrupted; {str(cause) or 'nothing half-written was left behind'}", err=True)


def _leave_interrupted() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the interpreter takes a moment to end, without a handler
    sys.exit(130)


def _leave_quietly() -> NoReturn:
    """End where nobody reads on: what is left to flush must not fail again on the way out."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
    sys.exit(0)
