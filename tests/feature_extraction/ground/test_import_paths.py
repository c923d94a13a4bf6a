import subprocess
import sys
from types import ModuleType

import pytest

from aadml.feature_extraction.ground import import_paths
from aadml.feature_extraction.ground.consent import consent_to, is_place, trusting
from aadml.feature_extraction.ground.errors import InputError, MissingExtraError, UntrustedCodeError
from aadml.feature_extraction.ground.import_paths import (
    first_line,
    imported_with_consent,
    optional,
    search_beside,
    source_with_consent,
)

MODULE = '''
"""Of the module."""
from collections.abc import Callable
from inner_of_places import told_there

plain = 3
"""A number
over two lines."""
typed: int = 4
"""A typed number."""
bare = 5
made = learned(Thing)
own = learned(Thing)
"""Its own."""
several = learned(Thing, 3)
empty = learned()


def function():
    """Do it.

    And more.
    """


class Thing:
    """Be it."""


raise SystemExit("importing me is forbidden")
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(import_paths, "_beside", {})
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.endswith("_of_places")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def put(folder, name, text):
    (folder / f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a:b", True), ("a.b_c:D1", True), ("a", False), ("a:", False), (":a", False), ("a.:b", False), ("a:b:c", False),
     ("legacy:label-graph", False), ("/x.py:f", False), ("1a:b", False), (3, False), (None, False)],
)  # fmt: skip
def test_a_place_is_a_dotted_module_a_colon_and_a_name(text, expected):
    assert is_place(text) is expected


@pytest.mark.parametrize(
    ("name", "line"),
    [("function", "Do it."), ("Thing", "Be it."), ("plain", "A number"), ("typed", "A typed number."),
     ("told_there", ""), ("bare", ""), ("absent", ""), ("made", "Be it."),
     ("own", "Its own."), ("several", ""), ("empty", ""), ("Callable", "")],
)  # fmt: skip
def test_documentation_is_read_without_importing(folder, name, line):
    put(folder, "outer_of_places", MODULE)
    search_beside(folder)
    assert first_line(f"outer_of_places:{name}") == line
    assert "outer_of_places" not in sys.modules


def test_documentation_inside_packages_is_read_without_importing_them(folder):
    package = folder / "package_of_places" / "deep"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("raise RuntimeError\n")
    put(package, "module", 'X = 1\n"""Deep."""\n')
    search_beside(folder)
    assert first_line("package_of_places.deep.module:X") == "Deep."
    (folder / "plain_of_places").mkdir()
    assert first_line("plain_of_places:X") == ""
    assert first_line("package_of_places.shallow.module:X") == first_line("nowhere_of_places:X") == ""


def test_a_module_beside_the_data_is_found_and_so_is_one_in_the_current_folder(folder):
    data = folder / "data"
    data.mkdir()
    put(data, "beside_of_places", "x = 1\n")
    put(folder, "here_of_places", "x = 2\n")
    search_beside(data / "clips.h5")
    with trusting():
        assert imported_with_consent("beside_of_places:x") == 1
        assert imported_with_consent("here_of_places:x") == 2


def test_a_module_of_the_current_folder_is_not_replaced_by_one_beside_the_data(folder):
    data = folder / "data"
    data.mkdir()
    put(data, "mine_of_places", "x = 'planted'\n")
    put(folder, "mine_of_places", "x = 'mine'\n")
    search_beside(data)
    consent_to("mine_of_places:x")
    assert imported_with_consent("mine_of_places:x") == "mine"


def test_only_the_folder_that_holds_a_module_enters_the_path(folder):
    data = folder / "data"
    data.mkdir()
    put(data, "planted_of_places", "x = 1\n")
    put(folder, "mine_of_places", "try:\n    import planted_of_places as x\nexcept ImportError:\n    x = None\n")
    search_beside(data)
    consent_to("mine_of_places:x", "json:loads")
    assert imported_with_consent("json:loads")
    assert str(folder) not in sys.path
    assert imported_with_consent("mine_of_places:x") is None
    assert sys.path[-1] == str(folder)
    assert str(data) not in sys.path


def test_a_folder_without_a_module_gives_way_to_a_module_of_its_name(folder):
    data = folder / "data"
    (folder / "plain_of_places").mkdir()
    (folder / "plain_of_places" / "inner.py").write_text("x = 2\n")
    consent_to("plain_of_places.inner:x", "file_of_places:x")
    assert imported_with_consent("plain_of_places.inner:x") == 2
    (folder / "file_of_places").mkdir()
    data.mkdir()
    put(data, "file_of_places", "x = 3\n")
    search_beside(data)
    assert imported_with_consent("file_of_places:x") == 3


def test_a_module_without_readable_source_has_no_documentation(folder, monkeypatch):
    put(folder, "wrong_of_places", "def f(:\n")
    monkeypatch.setitem(sys.modules, "specless_of_places", ModuleType("specless_of_places"))
    search_beside(folder)
    assert [first_line(place) for place in ("wrong_of_places:f", "specless_of_places:f", "sys:exit")] == ["", "", ""]


def test_the_source_of_an_object_is_found_without_importing_it(folder):
    for name in ("package_of_places", "plain_of_places"):
        (folder / name / "deep").mkdir(parents=True)
        put(folder / name / "deep", "inner", "raise RuntimeError\n")
    put(folder / "package_of_places", "__init__", "raise RuntimeError\n")
    put(folder, "file_of_places", "raise RuntimeError\n")
    package, plain = "package_of_places.deep.inner:f", "plain_of_places.deep.inner:f"
    with trusting():
        assert source_with_consent("file_of_places:f") == ("file_of_places:f", folder / "file_of_places.py")
        assert source_with_consent(package) == (package, folder / "package_of_places")
        assert source_with_consent(plain) == ("inner:f", folder / "plain_of_places/deep/inner.py")
        assert source_with_consent("plain_of_places.none:f") == ("none:f", None)
        assert source_with_consent("plain_of_places:f") == ("plain_of_places:f", None)
        with pytest.raises(
            InputError, match=r"^nowhere_of_places.a:f: there is no module 'nowhere_of_places'; install"
        ):
            source_with_consent("nowhere_of_places.a:f")
    with pytest.raises(UntrustedCodeError, match="names encoder file_of_places:f"):
        source_with_consent("file_of_places:f", "encoder")


def test_a_folder_with_a_module_of_an_installed_name_does_not_enter_the_path(folder, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    put(folder, "colorsys", "rgb_to_hsv = 1\n")
    consent_to("colorsys:rgb_to_hsv")
    assert callable(imported_with_consent("colorsys:rgb_to_hsv"))
    assert str(folder) not in sys.path


def test_a_missing_name_is_answered_with_twenty_names_of_the_module(folder):
    put(folder, "made_of_places", "".join(f"n{number:02} = _p{number} = 1\n" for number in range(30)))
    names = ", ".join(f"n{number:02}" for number in range(20))
    with trusting(), pytest.raises(InputError, match=f"but defines {names}; pass a name that the module defines$"):
        imported_with_consent("made_of_places:f")


def test_names_of_a_package_are_imported_on_first_use():
    attribute = import_paths.imported_on_demand("aadml.feature_extraction.ground", {"is_place": "consent"})
    assert attribute("is_place") is is_place
    with pytest.raises(AttributeError, match=r"^module 'aadml.feature_extraction.ground' has no attribute 'consent'$"):
        attribute("consent")


def test_without_consent_nothing_is_imported_and_no_folder_enters_the_path(folder):
    put(folder, "made_of_places", "raise RuntimeError\n")
    before = [*sys.path]
    search_beside(folder)
    with pytest.raises(UntrustedCodeError, match=r"made_of_places:f.*--trust-code"):
        imported_with_consent("made_of_places:f", "loss")
    assert sys.path == before
    assert "made_of_places" not in sys.modules


def test_consent_to_a_name_is_for_that_name_alone(folder):
    put(folder, "made_of_places", "f = 1\ng = 2\n")
    consent_to("aa-made_of_places:f")
    assert imported_with_consent("made_of_places:f") == 1
    with pytest.raises(UntrustedCodeError):
        imported_with_consent("made_of_places:g")


def test_no_module_beside_the_data_takes_the_place_of_an_installed_one(folder):
    put(folder, "json", "dumps = 1\n")
    code = (
        "from pathlib import Path; from aadml.feature_extraction.ground.consent import consent_to;"
        "from aadml.feature_extraction.ground.import_paths import *;"
        "search_beside(Path('.')); consent_to('json:dumps');"
        "print(callable(imported_with_consent('json:dumps')))"
    )
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "True"


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        (
            "nowhere_of_places:f",
            "",
            "nowhere_of_places:f: there is no module 'nowhere_of_places'; install the module",
        ),
        ("made_of_places.py:f", "x = 1\n", "no module 'made_of_places.py'; write .* without .py: made_of_places:f"),
        ("made_of_places:f", "def g(): ...\n", "made_of_places.py does not define 'f', but defines g; "),
        (
            "made_of_places:f",
            "import no_such_module_of_places\n",
            r"cannot be imported \(ModuleNotFoundError: No module",
        ),
        ("made_of_places:f", "def f(:\n", r"\(SyntaxError: .*, in .*made_of_places.py, line 1\); correct"),
        ("made_of_places:f", "x = 1\n1 / 0\n", r"\(ZeroDivisionError: .*, in .*made_of_places.py, line 2\)"),
        (
            "made_of_places:f",
            "raise SystemExit(0)\n",
            r"made_of_places:f: the module cannot be imported \(SystemExit: 0",
        ),
        ("made_of_places.deeper:f", "x = 1\n", "there is no module 'made_of_places.deeper'"),
    ],
)
def test_a_wrong_door_is_one_line(folder, place, text, message):
    if text:
        put(folder, "made_of_places", text)
    with trusting(), pytest.raises(InputError, match=message) as caught:
        imported_with_consent(place)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import no_such_part\n",
            r"cannot be imported \(No module named 'no_such_part'\); remove this cause, or run "
            r"pip install 'aadml\[x\]'",
        ),
        ("raise ImportError('libx.so: not found')\n", r"cannot be imported \(libx.so: not found\); remove"),
        ("", "is not installed; run"),
    ],
)
def test_an_optional_package_is_absent_or_defective(folder, monkeypatch, text, message):
    if text:
        put(folder, "defective_package", text)
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(MissingExtraError, match=f"^a figure needs defective_package, which {message}"):
        optional("defective_package", "a figure", "aadml[x]")
