"""Import paths "package.module:name" of registries, configs and flags.

An external module is imported only with consent (`consent.py`). The module is searched for on `sys.path`, then in the
current folder, then in the folders passed to `search_beside`. Its folder is appended to `sys.path`, so that no file in
the folder can replace an installed package. Child processes of `multiprocessing` start with the `sys.path` of their
parent.
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
from typing import Any

from aadml.feature_extraction.ground import consent
from aadml.feature_extraction.ground.consent import require_consent
from aadml.feature_extraction.ground.errors import InputError, MissingExtraError, cause

_beside: dict[str, None] = {}


def search_beside(path: Path) -> None:
    """Add a folder, or the folder of a file, to the search for external modules, behind the current folder."""
    _beside[str((path if path.is_dir() else path.parent).resolve())] = None


def imported(place: str) -> Any:
    """Import an object of this project or of an installed package. Errors are defects and are not converted."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def optional(module: str, user: str, install: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: name of the module.
        user: feature that needs the package, for the message.
        install: package to install ("aadml[hub]").

    Raises:
        MissingExtraError: the module cannot be imported.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == package:
            raise MissingExtraError.of(user, package, install) from error
        raise MissingExtraError(
            f"{user} needs {package}, which cannot be imported ({cause(error)}); remove this cause, or run "
            f"pip install '{install}'"
        ) from error


def imported_with_consent(place: str, kind: str = "") -> Any:
    """Import an object of external code; the module may be in the current folder or beside the data.

    Args:
        place: "module:name".
        kind: kind of the entry ("loss"), for the message.

    Raises:
        UntrustedCodeError: the name was neither typed nor consented to.
        InputError: see `imported_from_outside`.
    """
    require_consent(place, kind)
    _find(place.partition(":")[0].partition(".")[0])
    return imported_from_outside(place)


def source_with_consent(place: str, kind: str = "") -> tuple[str, Path | None]:
    """Find the module of an external object without importing the module.

    Args:
        place: "module:name".
        kind: kind of the entry ("encoder"), for the message.

    Returns:
        The import path of the object, and a file or folder. For a module in a folder without `__init__.py`, the
        import path names the module without the folder. If the module belongs to a package, the second value is the
        folder of the top package. Otherwise, the second value is the file of the module; None if that file does not
        exist.

    Raises:
        UntrustedCodeError: the name was neither typed nor consented to.
        InputError: the top module does not exist.
    """
    require_consent(place, kind)
    module, _, name = place.partition(":")
    top, *inner = module.split(".")
    _find(top)
    spec = importlib.util.find_spec(top)
    if spec is None:
        raise InputError(_absent(place, top))
    if spec.origin is not None:
        file = Path(spec.origin)
        return place, file.parent if file.name == "__init__.py" else file
    files = [Path(folder).joinpath(*inner).with_suffix(".py") for folder in spec.submodule_search_locations or ()]
    return f"{inner[-1] if inner else top}:{name}", next((file for file in files if file.is_file()), None)


def _find(module: str) -> None:
    """Append the folder of a module to `sys.path`: the current folder or a folder of `_beside`.

    Nothing is appended for an imported module, or for a module with a file or an `__init__.py` on `sys.path`. A
    folder with the file or the `__init__.py` of the module takes precedence over other folders.
    """
    importlib.invalidate_caches()
    if module in sys.modules or _is_file(importlib.util.find_spec(module)):
        return
    specs = {folder: PathFinder.find_spec(module, [folder]) for folder in (str(Path.cwd()), *_beside)}
    holding = [folder for folder, spec in specs.items() if spec is not None]
    folder = next((path for path in holding if _is_file(specs[path])), next(iter(holding), None))
    if folder is not None and folder not in sys.path:
        sys.path.append(folder)
        consent.folders.append(folder)


def _is_file(spec: ModuleSpec | None) -> bool:
    """Return whether a module is a file or has an `__init__.py`, and thus takes precedence over plain folders."""
    return spec is not None and spec.origin is not None


def imported_from_outside(place: str) -> Any:
    """Import an object of an installed package, or an external object that was consented to.

    Raises:
        InputError: the module does not exist, cannot be imported, or does not define the name.
    """
    name, _, attribute = place.partition(":")
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:  # an external module may raise anything
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise InputError(_absent(place, str(error.name))) from error
        raise InputError(_failure(place, error)) from error
    if not hasattr(module, attribute):
        where = getattr(module, "__file__", None) or name
        public = ", ".join(sorted(key for key in vars(module) if not key.startswith("_"))[:20]) or "nothing"
        raise InputError(
            f"{place}: {where} does not define '{attribute}', but defines {public}; pass a name that the module defines"
        )
    return getattr(module, attribute)


def _absent(place: str, module: str) -> str:
    name, _, attribute = place.partition(":")
    advice = "install the module, or put its file beside the data or in the current folder"
    if name.endswith(".py"):
        advice = f"write the name of the module without .py: {Path(name).stem}:{attribute}"
    return f"{place}: there is no module '{module}'; {advice}"


def _failure(place: str, error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    at = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (last.filename, last.lineno)
    what = " ".join(f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}".split())
    return f"{place}: the module cannot be imported ({what}, in {at[0]}, line {at[1]}); correct the module"


def first_line(place: str) -> str:
    """Return the first line of the documentation of an object; see `documentation`."""
    return documentation(place).partition("\n")[0]


def documentation(place: str) -> str:
    """Return the documentation of the object at an import path without importing its module.

    The documentation is the docstring of a function or class, or the string below an assignment. An assigned call
    without such a string has the documentation of its argument.

    Returns:
        The text; "" if the source cannot be read, does not define the name or contains no documentation.
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
        if name in _defined_names(statement):
            argument = _argument(statement)
            if argument and not _documentation(statement, following):
                return documentation(f"{module}:{argument}")
            return _documentation(statement, following).strip()
    return ""


def _defined_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _argument(statement: ast.stmt) -> str:
    """Return the name of the only argument of an assigned call (`a = learned(B)`); "" for other statements."""
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
    """Return the file of a module without importing its packages; None if the module has no Python file."""
    top, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(top) or PathFinder.find_spec(top, [*_beside])
    except ValueError:  # a module without a spec, from a test or a script
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
    """Return the `__getattr__` of a package whose names are imported on first use (PEP 562).

    Args:
        package: `__name__` of the package.
        homes: name -> submodule that defines the name.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return imported(f"{package}.{homes[name]}:{name}")

    return attribute
