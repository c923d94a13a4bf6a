"""Imports go down: packages, floors inside a package, and never between siblings."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# rooms of one floor never import each other; every arrow goes to a floor further up in these lists
EXTRACTION_FLOORS = [
    ["ground"],
    ["foreign", "media"],
    ["manifest"],
    ["feature_file", "frontends", "weights", "engines"],
    ["layers"],
    ["backbones"],
    ["hub", "ledger", "self_test"],
    ["jobs"],
]

AADML_FLOORS = [
    ["comparison"],
    ["layers"],
    ["losses", "selections", "proxies", "retrieval", "data"],
    ["objective"],
    ["methods"],
    ["model"],
    ["protocols"],
    ["configuration"],
    ["runs"],
    ["reports"],
    ["studies"],
    ["papers", "search"],
    ["cli"],
    ["__main__"],
]
FORBIDDEN_NAMES = {"utils", "common", "helpers", "misc"}


def modules(package: str) -> Iterator[Path]:
    yield from sorted((ROOT / package).rglob("*.py"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that a file says."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imported(path: Path) -> set[str]:
    """Every module of the two packages that a file imports, also inside functions, as dotted names."""
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names if is_module(f"{node.module}.{alias.name}")}
    own = {name for name in names if name.split(".")[0] in ("aadml", "feature_extraction")}
    return {name.removeprefix("aadml.") if name.startswith("aadml.feature_extraction") else name for name in own}


def test_the_extraction_package_has_one_import_name():
    """A folder `feature_extraction` of a user's own must never stand in the way."""
    assert not [
        line
        for package in ("aadml", "feature_extraction", "tests", "scripts")
        for line in imports_of({"feature_extraction"}, package)
    ]


@pytest.mark.parametrize("package", ["aadml", "feature_extraction"])
def test_the_packages_import_no_script_and_no_test(package):
    """Experiments and measurements are clients."""
    assert not list(imports_of({"scripts", "tests"}, package))


def imports_of(top_names: set[str], package: str) -> Iterator[str]:
    """List file and line of every import of some top-level names."""
    for path in modules(package):
        for node in nodes(path):
            module = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else module
            yield from (f"{dotted(path)}, line {node.lineno}" for n in names if n.split(".")[0] in top_names)


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_feature_extraction_never_imports_aadml():
    wrong = {str(p): n for p in modules("feature_extraction") for n in imported(p) if n.split(".")[0] == "aadml"}
    assert not wrong


@pytest.mark.parametrize(
    ("package", "floors"),
    [("feature_extraction", EXTRACTION_FLOORS), ("aadml", AADML_FLOORS)],
    ids=["extraction", "aadml"],
)
def test_imports_go_down(package, floors):
    height = {name: number for number, names in enumerate(floors) for name in names}
    wrong = []
    for path in modules(package):
        room = [*dotted(path).split("."), ""][1]
        for name in imported(path):
            target = [*name.split("."), ""][1]
            if name.split(".")[0] != package or not room or not target or target == room:
                continue
            assert room in height, f"{path}: the room '{room}' has no floor yet; add it to this test"
            assert target in height, f"{name}: the room '{target}' has no floor yet; add it to this test"
            if height[target] >= height[room]:
                wrong.append(f"{dotted(path)} imports {name}")
    assert not wrong


TABLE_ROOMS = ["aadml.losses", "aadml.selections", "feature_extraction.backbones"]


@pytest.mark.parametrize("room", TABLE_ROOMS)
def test_siblings_never_import_each_other(room):
    folder = ROOT / room.replace(".", "/")
    files = {dotted(path) for path in folder.glob("*.py")} - {room}
    wrong = [f"{dotted(p)} imports {n}" for p in folder.glob("*.py") if dotted(p) != room for n in imported(p) & files]
    assert not wrong


def test_no_room_is_called_utils():
    names = {path.stem for package in ("aadml", "feature_extraction") for path in modules(package)}
    names |= {path.parent.name for package in ("aadml", "feature_extraction") for path in modules(package)}
    assert not names & FORBIDDEN_NAMES


def test_nothing_prints_outside_the_command_line():
    wrong = []
    for package in ("aadml", "feature_extraction"):
        for path in modules(package):
            if "cli" in path.parts:
                continue
            calls = (n for n in nodes(path) if isinstance(n, ast.Call))
            wrong += [str(path) for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    assert not wrong


def test_commands_print_by_functions_that_escape_control_characters():
    forbidden = ("click.echo", "click.secho", "click.echo_via_pager", "sys.stdout.write", "sys.stderr.write", "print")
    wrong = [
        f"{path.name}, line {node.lineno}: {ast.unparse(node)}"
        for path in modules("aadml/cli")
        if dotted(path) != "aadml.cli.terminal"
        for node in nodes(path)
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in forbidden
    ]
    assert not wrong, "print by aadml.cli.terminal"


def test_hdf5_files_have_one_writer():
    wrong = []
    for path in [*modules("aadml"), *modules("feature_extraction")]:
        if dotted(path) == "feature_extraction.feature_file.output":
            continue
        for node in nodes(path):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            creates = called.split(".")[-1] in ("create_dataset", "create_group", "require_dataset", "require_group")
            opens = called.endswith("h5py.File") and not ast.unparse(node).endswith(", 'r')")
            wrong += [f"{path}: {called}"] if creates or opens else []
    assert not wrong, "write HDF5 by aadml.feature_extraction.feature_file.output, which keeps times out of files"


def test_dictionaries_of_anything_are_rare():
    kind = re.compile(r"\b(Mapping|dict)\[str, (Any|object)\]")
    files = [*(ROOT / "aadml").rglob("*.py"), *(ROOT / "feature_extraction").rglob("*.py")]
    found = [f"{path.relative_to(ROOT)}: {line.strip()}" for path in files for line in path.read_text().splitlines()
             if kind.search(line)]  # fmt: skip
    assert len(found) <= 10, "give records types, and any JSON the type Json:\n" + "\n".join(found)


MUTABLE = {
    "aadml/methods/training/loop.py": {"_Progress", "_Loop"},
    "feature_extraction/jobs/extract.py": {"_Job"},
    "feature_extraction/ground/worker_pool.py": {"_Worker"},
}
"""Dataclasses that change while they are used; every other one is frozen."""


@pytest.mark.parametrize("package", ["aadml", "feature_extraction"])
def test_dataclasses_are_frozen(package):
    found: dict[str, set[str]] = {}
    for path in modules(package):
        for node in nodes(path):
            decorators = node.decorator_list if isinstance(node, ast.ClassDef) else []
            named = [ast.unparse(one) for one in decorators]
            if any(one.startswith("dataclass") and "frozen=True" not in one for one in named):
                found.setdefault(str(path.relative_to(ROOT)), set()).add(node.name)
    assert found == {place: names for place, names in MUTABLE.items() if place.startswith(package)}


@pytest.mark.parametrize("package", ["aadml", "feature_extraction"])
def test_a_method_without_content_of_an_abstract_class_is_abstract(package):
    found = [
        f"{path}: {node.name}.{method.name}"
        for path in modules(package)
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and "ABC" in map(ast.unparse, node.bases)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method) and len(method.body) == 1
        if "abstractmethod" not in map(ast.unparse, method.decorator_list)
    ]
    assert found == []


@pytest.mark.parametrize("package", ["aadml", "feature_extraction"])
def test_no_function_trusts_code_or_accepts_other_features_unless_it_is_told_to(package):
    defaults = {
        f"{path}: {node.name}({name})": default.value
        for path in modules(package)
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
        for name, default in _defaults(node.args)
        if name in ("trust_code", "allow_other_features") and isinstance(default, ast.Constant)
    }
    assert {name for name, default in defaults.items() if default is not False} == set()


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from ((one.arg, value) for one, value in zip(positional[::-1], arguments.defaults[::-1], strict=False))
    yield from ((one.arg, value) for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
