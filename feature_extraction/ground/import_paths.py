"""Places: "package.module:name", the way in which tables, configs and flags name a thing that is to be imported.

A module from outside is imported with consent alone (`consent.py`). It is searched where Python searches, then in the
current folder, then in the folders given to `search_beside`. The folder in which it is found is put at the end of
`sys.path`, so that no file there can take the place of an installed package; processes started by `multiprocessing`
begin with the `sys.path` of the process that starts them.
"""

import ast
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from aadml.feature_extraction.ground import consent
from aadml.feature_extraction.ground.consent import require_consent
from aadml.feature_extraction.ground.errors import InputError

_beside: dict[str, None] = {}


def search_beside(path: Path) -> None:
    """Search modules from outside in a folder, or in the folder of a file, too, after everything Python searches."""
    _beside[str((path if path.is_dir() else path.parent).resolve())] = None


def imported(place: str) -> Any:
    """Import what stands at a place of this project or of an installed package; what goes wrong there is a defect."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def imported_with_consent(place: str, kind: str = "") -> Any:
    """Import what a user names; the module may lie in the current folder or beside the data.

    Args:
        place: "module:name".
        kind: of the entry that is named ("loss"), for the message.

    Raises:
        UntrustedCodeError: nobody typed that name, or consented to the code that files name.
        InputError: as of `imported_from_outside`.
    """
    require_consent(place, kind)
    _find(place.partition(":")[0].partition(".")[0])
    return imported_from_outside(place)


def _find(module: str) -> None:
    """Put the folder that holds a module at the end of `sys.path`: the current one, or else one of `search_beside`."""
    importlib.invalidate_caches()
    if module in sys.modules or _is_file(importlib.util.find_spec(module)):
        return
    specs = {folder: PathFinder.find_spec(module, [folder]) for folder in (str(Path.cwd()), *_beside)}
    holding = [folder for folder, spec in specs.items() if spec is not None]
    folder = next((one for one in holding if _is_file(specs[one])), next(iter(holding), None))
    if folder is not None and folder not in sys.path:
        sys.path.append(folder)
        consent.folders.append(folder)


def _is_file(spec: ModuleSpec | None) -> bool:
    """Return whether a module is a file or has an `__init__.py`; a folder alone gives way to those, as in Python."""
    return spec is not None and spec.origin is not None


def imported_from_outside(place: str) -> Any:
    """Import what an installed package brings, or what was consented to.

    Raises:
        InputError: no such module, an error while it is imported, or no such name in it.
    """
    name, _, attribute = place.partition(":")
    module = _module(place, name)
    if not hasattr(module, attribute):
        where = getattr(module, "__file__", None) or name
        public = ", ".join(sorted(key for key in vars(module) if not key.startswith("_"))[:20]) or "nothing"
        raise InputError(f"{place}: {where} holds no '{attribute}'; it holds {public}")
    return getattr(module, attribute)


def _module(place: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise InputError(
                f"{place}: there is no module '{error.name}'; modules are searched among the installed packages, "
                "beside the data and in the current folder"
            ) from error
        raise InputError(_failure(place, error)) from error
    except (Exception, SystemExit) as error:  # whatever another's module does while it is imported
        raise InputError(_failure(place, error)) from error


def _failure(place: str, error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    at = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (last.filename, last.lineno)
    what = " ".join(f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}".split())
    return f"{place}: its module cannot be imported; {what} ({at[0]}, line {at[1]})"


def first_line(place: str) -> str:
    """Read the first line of the `documentation` of what stands at a place."""
    return documentation(place).partition("\n")[0]


def documentation(place: str) -> str:
    """Read the documentation of what stands at a place, without importing it.

    The documentation is the docstring of a function or class, or the string below an assignment; a name that a module
    has from another is followed there, and so is what an assigned call is given.

    Returns:
        The text; empty where there is no source or no documentation.
    """
    module, _, name = place.partition(":")
    file = _source_file(module)
    if file is None:
        return ""
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return ""
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return documentation(f"{statement.module}:{alias.name}")
        if name in _defined_names(statement):
            made_of = _argument(statement)
            if made_of and not _documentation(statement, following):
                return documentation(f"{module}:{made_of}")
            return _documentation(statement, following).strip()
    return ""


def _defined_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _argument(statement: ast.stmt) -> str:
    """Name what a call that is assigned is given (`acmr = learned(AdversarialLearner)`); "" where it is no such."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    first = call.args[0] if isinstance(call, ast.Call) and len(call.args) == 1 else None
    return first.id if isinstance(first, ast.Name) else ""


def _documentation(statement: ast.stmt, following: ast.stmt | None) -> str:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return ast.get_docstring(statement) or ""
    value = following.value if isinstance(following, ast.Expr) else None
    text = value.value if isinstance(value, ast.Constant) else None
    return inspect.cleandoc(text) if isinstance(text, str) else ""


def _source_file(module: str) -> Path | None:
    """Find the file of a module without importing its packages."""
    top, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(top) or PathFinder.find_spec(top, [*_beside])
    except ValueError:  # a module that a test or a script made up
        return None
    if spec is None:
        return None
    if not inner:
        return Path(spec.origin) if spec.origin is not None and spec.origin.endswith(".py") else None
    for folder in spec.submodule_search_locations or ():
        path = Path(folder).joinpath(*inner)
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                return file
    return None


def imported_on_demand(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package whose names are imported on first use (PEP 562).

    Args:
        package: its `__name__`.
        homes: name -> the module of the package that defines it.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return imported(f"{package}.{homes[name]}:{name}")

    return attribute
