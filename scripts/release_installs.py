"""Install a wheel into fresh environments, one after another, use each, and print a table; exit status 1 if one fails.

Usage: python -m scripts.release_installs WHEEL [--python PATH ...] [--only NAME ...] [-o FILE.md]

torch has the version of constraints.txt. Every environment is removed after use. The first Python tries the core, each
extra at its newest and its lowest versions, headless OpenCV, and README's sessions; further Pythons try all extras.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from scripts import readme_session

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]
LOWEST = "lowest"
IMPORTS = """
import importlib.util, sys
from importlib.metadata import packages_distributions
wanted, imported = set(sys.argv[1:]), set()
if importlib.util.find_spec("triton"):
    import triton  # crashes if imported after TensorFlow 2.20: https://github.com/tensorflow/tensorflow/issues/124205
for module, names in packages_distributions().items():
    provided = wanted & {name.lower() for name in names}  # Pillow 10 has a capital
    if provided and module.isidentifier() and not module.startswith("_"):
        importlib.import_module(module)
        imported |= provided
assert imported == wanted, wanted - imported
"""
"""Imports the modules of the distributions that are its arguments."""
USES = {"plot": ("report", "RUN"), "onnx": ("export", "RUN", "-o", "model.onnx")}
"""Extra -> command of `aadml` that needs the extra and no network."""
FOREIGN = 'raise ImportError("the feature_extraction of another project was imported")\n'


@dataclass(frozen=True)
class Case:
    """One environment; `headless` replaces OpenCV, and `sessions` runs the sessions of README."""

    name: str
    python: str
    extras: tuple[str, ...] = ()
    resolution: str = "newest"
    headless: bool = False
    sessions: bool = False


@dataclass(frozen=True)
class Row:
    """Measurements of an environment; `fault` is empty if all its steps passed."""

    case: Case
    version: str = ""
    packages: int = 0
    megabytes: float = 0
    install: float = 0
    use: float = 0
    import_ms: float = 0
    fault: str = ""


def processor_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class StepError(Exception):
    """A step of an environment failed."""


def cases(pythons: list[str]) -> Iterator[Case]:
    """Yield the environments of a release."""
    yield Case("README", pythons[0], ("plot", "serve"), sessions=True)
    yield Case("headless OpenCV", pythons[0], ("plot",), headless=True)
    for python in pythons:
        yield Case("core, newest", python)
        yield Case("all extras, newest", python, tuple(EXTRAS))
    for resolution in (LOWEST, "newest"):
        if resolution == LOWEST:
            yield Case("core, lowest", pythons[0], (), resolution)
            yield Case("all extras, lowest", pythons[0], tuple(EXTRAS), resolution)
        for extra in EXTRAS:
            yield Case(f"{extra}, {resolution}", pythons[0], (extra,), resolution)


class Environment:
    """A fresh environment in a folder, with an empty working folder beside it."""

    def __init__(self, folder: Path, python: str) -> None:
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.bin = folder / "environment" / "bin"
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.variables |= {"PATH": f"{self.bin}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
        self.variables |= {"UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", "")}
        self.uv("venv", "--python", python, str(self.bin.parent))

    def run(self, *command: str) -> str:
        """Return what a command prints; raise StepError with its last line if it fails."""
        command = ("timeout", "1800", *command)
        process = subprocess.run(
            command, cwd=self.work, env=self.variables, capture_output=True, text=True, check=False
        )
        if process.returncode:
            lines = (process.stderr.strip() or process.stdout.strip() or "printed nothing").splitlines()
            step = " ".join(Path(word).name for word in command[2:6] if len(word) < 80)
            raise StepError(f"{step}: exit status {process.returncode}: {' '.join(lines[-3:])[-400:]}")
        return process.stdout

    def uv(self, *words: str) -> str:
        """Return what a command of uv prints."""
        return self.run(str(Path(sys.executable).with_name("uv")), "--quiet", *words)

    def pip(self, command: str, *words: str) -> str:
        """Return what a `uv pip` command prints about this environment."""
        return self.uv("pip", command, "--python", str(self.bin / "python"), *words)

    def aadml(self, *words: str) -> str:
        """Return what a command of aadml prints."""
        return self.run(str(self.bin / "aadml"), *words)

    def python(self, code: str, *words: str) -> str:
        """Return what a program prints."""
        return self.run(str(self.bin / "python"), "-c", code, *words)

    def megabytes(self) -> float:
        """Return the size of the installed files in MB."""
        files = self.bin.parent.rglob("*")
        return sum(path.lstat().st_size for path in files if not path.is_dir()) / 1e6

    def import_ms(self) -> float:
        """Return processor milliseconds of `import aadml` above those of Python itself, the least of ten each."""

        def least(code: str) -> float:
            times = []
            for _ in range(10):
                before = processor_seconds()
                self.python(code)
                times.append(processor_seconds() - before)
            return min(times)

        least("import aadml")  # writes the bytecode
        return 1000 * (least("import aadml") - least("pass"))


def install(place: Environment, wheel: Path, case: Case) -> None:
    """Install torch for the CPU, because its lowest allowed build would be one for GPUs, then the wheel with extras."""
    constraints = ("-c", str(ROOT / "constraints.txt"))
    place.pip("install", *constraints, "torch")
    if case.resolution == LOWEST:  # of a wheel, uv would count only the wheel as a direct dependency
        extras = [word for extra in case.extras for word in ("--extra", extra)]
        project = ("-r", str(ROOT / "pyproject.toml"), *extras)
        place.pip("install", *constraints, "--resolution", "lowest-direct", *project)
        place.pip("install", "--no-deps", str(wheel))
        if len(case.extras) < 2:  # one extra may need a later version than another
            check_floors(place, case)
    else:
        place.pip("install", *constraints, f"aadml[{','.join(case.extras)}] @ {wheel.as_uri()}")
    if case.headless:  # as docs/site/install.md says
        place.pip("uninstall", "opencv-python")
        place.pip("install", "opencv-python-headless")
        try:
            place.pip("check")
        except StepError as error:
            if str(error).count("opencv-python") != 1:
                raise
    else:
        place.pip("check")


def check_floors(place: Environment, case: Case) -> None:
    """Raise StepError if a direct dependency other than torch is not installed at its lowest version."""
    pinned = dict(line.split("==") for line in place.pip("freeze").splitlines() if "==" in line)
    for line in [*CORE, *(line for extra in case.extras for line in EXTRAS[extra])]:
        requirement, floor = floor_of(line)
        installed = Version(pinned[requirement.name])
        if requirement.name != "torch" and installed != floor:
            raise StepError(f"{requirement.name} {installed} is not at its lowest version {floor}")


def floor_of(line: str) -> tuple[Requirement, Version]:
    """Return a requirement with its lowest version."""
    requirement = Requirement(line)
    return requirement, Version(next(part.version for part in requirement.specifier if part.operator == ">="))


def use(place: Environment, case: Case) -> None:
    """Run commands that must succeed in every environment, and those of the extras."""
    origin = place.python("import aadml; print(aadml.__file__)").strip()
    if not origin.startswith(str(place.bin.parent)):
        raise StepError(f"import aadml: {origin} is not the installed package")
    place.aadml("--help")
    place.aadml("doctor", "--json")
    run = place.aadml("train", "--data", "synthetic:ave", "--loss", "triplet", "--epochs", "2").split()[-1]
    names = [re.split(r"[<>=]", line)[0] for extra in case.extras for line in EXTRAS[extra]]
    place.python(IMPORTS, *names)
    for extra in {*case.extras} & {*USES}:
        place.aadml(*(run if word == "RUN" else word for word in USES[extra]))
    if case.headless:
        place.aadml("sample-data", "clips")
        place.aadml("extract", "clips/manifest.csv", "-o", "clips.h5")
    if case.sessions:
        foreign = place.work / "foreign" / "feature_extraction"
        foreign.mkdir(parents=True)
        (foreign / "__init__.py").write_text(FOREIGN, encoding="utf-8")
        (place.work / "empty").mkdir()
        for folder in ("empty", "foreign"):
            session = readme_session.differences(place.work / folder, place.bin / "python", place.variables)
            for difference in session:
                raise StepError(f"README in a folder named {folder}: {difference}")


def measure(wheel: Path, case: Case) -> Row:
    """Return the measurements of a fresh environment, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="aadml-release-") as folder:
        start = time.monotonic()
        try:
            place = Environment(Path(folder), case.python)
            install(place, wheel, case)
            installed, used = time.monotonic(), processor_seconds()
            use(place, case)
        except StepError as error:
            return Row(case, fault=str(error), install=time.monotonic() - start)
        used = processor_seconds() - used
        version = place.python("import platform; print(platform.python_version())").strip()
        packages = len(place.pip("freeze").splitlines())
        return Row(case, version, packages, place.megabytes(), installed - start, used, place.import_ms())


def line(row: Row) -> str:
    """Return a row of the table."""
    if row.fault:
        return f"| {row.case.name} | {Path(row.case.python).resolve().name} | failed: {row.fault} | | | | |"
    return (
        f"| {row.case.name} | {row.version} | {row.packages} | {row.megabytes:,.0f} | {row.install:.0f} | "
        f"{row.use:.0f} | {row.import_ms:.0f} |"
    )


def programs(wheel: Path) -> Iterator[str]:
    """Run `aadml demo` by uvx and by pipx, which install the wheel themselves; yield a line each."""
    uv = str(Path(sys.executable).with_name("uv"))
    requirement, constraints = f"aadml[plot,serve] @ {wheel.as_uri()}", str(ROOT / "constraints.txt")
    for name, words in {
        "uvx": ("--constraints", constraints, "--from", requirement),
        "pipx": ("pipx", "run", "--spec", requirement),
    }.items():
        with tempfile.TemporaryDirectory(prefix="aadml-release-") as folder:
            variables = os.environ | {"PIPX_HOME": f"{folder}/pipx", "PIP_CONSTRAINT": constraints}
            variables |= {"UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""), "PYTHONPATH": ""}
            process = subprocess.run(
                (uv, "tool", "run", *words, "aadml", "demo"), cwd=folder, env=variables, capture_output=True, text=True
            )
            last = (process.stdout.strip() or process.stderr.strip()).splitlines()[-1]
            shutil.rmtree(Path(folder) / "pipx", ignore_errors=True)
            yield f'`aadml demo` by {name}: {"ends with" if not process.returncode else "FAILED with"} "{last}"'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters, the first for all cases")
    parser.add_argument("--only", nargs="+", default=[], help="names of cases, such as 'hub, lowest'")
    parser.add_argument("-o", "--output", type=Path, help="also write the lines to this file")
    arguments = parser.parse_args()
    wheel, written = arguments.wheel.resolve(strict=True), []

    def write(text: str) -> None:
        print(text, flush=True)
        written.append(text)

    write(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB\n")
    write("| environment | Python | packages | MB | install s | use, processor s | import, processor ms |")
    write("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for case in cases(arguments.python):
        if not arguments.only or case.name in arguments.only:
            write(line(measure(wheel, case)))
    if not arguments.only:
        write("")
        for result in programs(wheel):
            write(f"- {result}")
    if arguments.output:
        arguments.output.write_text("\n".join(written) + "\n", encoding="utf-8")
    return int(any(word in text for text in written for word in ("failed: ", "FAILED with")))


if __name__ == "__main__":
    sys.exit(main())
