"""Compare installed versions with the floors in pyproject.toml: one line each, exit code 1 if a floor is not installed.

python scripts/floor_versions.py [--torch]

Without --torch, torch may be newer than its floor.
"""

import argparse
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", action="store_true", help="torch has to be at its floor too")
    free = set() if parser.parse_args().torch else {"torch"}
    missed = []
    for name, floor in sorted(floors().items()):
        installed = Version(version(name))
        at_floor = installed.public == str(floor) or Version(installed.public) == floor
        note = "" if at_floor else "   not tried at its floor"
        print(f"{name:24} floor {floor!s:12} installed {installed}{note}")
        if not at_floor and name not in free:
            missed.append(name)
    if missed:
        print(f"not at their floors: {', '.join(missed)}; raise each floor to the version that was installed")
    return 1 if missed else 0


def floors() -> dict[str, Version]:
    """Return the lowest version that each requirement of the project, its extras and its groups allows."""
    project = PYPROJECT["project"]
    groups = [*project["optional-dependencies"].values(), *PYPROJECT["dependency-groups"].values()]
    lines = [*project["dependencies"], *(line for group in groups for line in group)]
    return {
        requirement.name: Version(next(each.version for each in requirement.specifier if each.operator == ">="))
        for requirement in map(Requirement, lines)
    }


if __name__ == "__main__":
    sys.exit(main())
