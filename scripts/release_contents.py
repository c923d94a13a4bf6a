"""Check the contents of a release: top-level names, required files, version and size.

Usage: python -m scripts.release_contents dist [--tag v0.1.0]
"""

import argparse
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 2_000_000  # bytes of the wheel
WHEEL_FILES = (
    "aadml/py.typed",
    "aadml/configs/aadml.yaml",
    "aadml/feature_extraction/py.typed",
    "aadml/cli/__init__.py",
)
SDIST_FILES = ("pyproject.toml", "README.md", "LICENSE", "configs/aadml.yaml", "aadml/feature_extraction/py.typed")
CODE_AND_DATA = {".py", ".yaml", ".html", ".css", ".js", ".csv", ".jinja", ".typed"}


def only(folder: Path, pattern: str) -> Path:
    """Return the only file that matches a pattern; raise SystemExit for none or several."""
    paths = sorted(folder.glob(pattern))
    if len(paths) != 1:
        raise SystemExit(f"{folder} has {len(paths)} files {pattern}; build a release into an empty folder")
    return paths[0]


def check(folder: Path, tag: str | None = None) -> str:
    """Check wheel and sdist in a folder and return a line on them; raise SystemExit for the first fault."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if tag and tag != f"v{version}":
        raise SystemExit(f"the tag is {tag}, but pyproject.toml has version {version}; tag v{version}")
    wheel, sdist = only(folder, f"aadml-{version}-*.whl"), only(folder, f"aadml-{version}.tar.gz")
    names, about = zipfile.ZipFile(wheel).namelist(), f"aadml-{version}.dist-info"
    tops = {name.partition("/")[0] for name in names}
    if tops != {"aadml", about}:
        raise SystemExit(f"{wheel.name} installs {', '.join(sorted(tops))}; it may install only aadml and {about}")
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in WHEEL_FILES if name not in names]
    missing += [f"{name} (sdist)" for name in SDIST_FILES if name not in sources]
    if missing:
        raise SystemExit(f"the release lacks {', '.join(missing)}; see [tool.hatch] in pyproject.toml")
    foreign = [name for name in names if name.startswith("aadml/") and Path(name).suffix not in CODE_AND_DATA]
    if foreign:
        raise SystemExit(f"{wheel.name} has {', '.join(foreign[:3])}; a wheel holds code, configs and templates")
    if wheel.stat().st_size > LARGEST:
        raise SystemExit(f"{wheel.name} has {wheel.stat().st_size:,} bytes; at most {LARGEST:,} are allowed")
    sizes = [f"{path.name}: {path.stat().st_size:,} bytes" for path in (wheel, sdist)]
    return f"{'; '.join(sizes)}; {len(names)} files in the wheel"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag")
    arguments = parser.parse_args()
    print(check(arguments.folder, arguments.tag))
