"""Run the shell session and the Python session of README, and compare their output with the output in README."""

import doctest
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
NUMBER = re.compile(r"\d+\.\d+|\b\d+%|(?<=[a-z]-)\d{4}\b")


def without_numbers(text: str) -> list[str]:
    """Return lines without measured numbers, spaces and numbers of clips (near ties)."""
    return [" ".join(NUMBER.sub("#", line).split()) for line in text.strip().splitlines() if line.strip()]


def blocks(language: str) -> str:
    """Return the only code block of a language in README."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    return str(block)


def differences(folder: Path, python: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run both sessions in a folder and yield each command whose output is not the output shown.

    Args:
        folder: empty folder in which the commands run.
        python: interpreter that has aadml.
        environment: environment variables, with a `PATH` on which `aadml` is found.
    """

    def run(*command: str) -> tuple[int, str, str]:
        process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        return process.returncode, process.stdout, process.stderr

    for command, *shown in (part.splitlines() for part in blocks("console").split("$ ")[1:]):
        code, printed, messages = run("bash", "-c", command)
        missing = {*without_numbers("\n".join(shown))} - {*without_numbers(printed)}
        if missing or code not in ((0, 1, 3) if command.startswith("aadml audit") else (0,)):
            yield f"{command}: exit status {code}, not printed: {sorted(missing)}\n{printed}{messages[-3000:]}"
    examples = doctest.DocTestParser().get_examples(blocks("python"))
    program = "\n".join(
        f"print(repr(({example.source.strip()})))" if example.want else example.source for example in examples
    )
    code, printed, messages = run(str(python), "-c", program)
    if code or without_numbers(printed) != without_numbers("".join(example.want for example in examples)):
        yield f"the Python session: exit status {code}\n{printed}{messages[-3000:]}"
