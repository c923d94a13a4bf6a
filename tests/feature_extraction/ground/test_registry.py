import sys

import pytest

from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError, UntrustedCodeError
from aadml.feature_extraction.ground.registry import OWN, JoinedRegistry, Registry, lookup, nearest, suggestion

HERE = "aadml.feature_extraction.ground.registry"
METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n"


def table(**options):
    places = {"near": f"{HERE}:nearest", "look-up": f"{HERE}:lookup"}
    return Registry("thing", places, group="aadml.things_of_this_test", **options)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put packages with entry points on the path, as an installer does; what they define is made in one module."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "brought_to_tables", raising=False)
    (tmp_path / "brought_to_tables.py").write_text('def one():\n    """Be one."""\n    return 1\n\n\nnumber = 3\n')

    def put(package, **names):
        info = tmp_path / f"{package}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(METADATA.format(name=package))
        lines = "".join(f"{name} = {place}\n" for name, place in names.items())
        (info / "entry_points.txt").write_text(f"[aadml.things_of_this_test]\n{lines}")

    return put


def test_a_table_is_a_mapping_of_names_to_what_stands_at_their_places():
    things = table()
    assert list(things) == ["near", "look-up"]
    assert len(things) == 2
    assert things["near"] is nearest
    assert dict(things) == {"near": nearest, "look-up": lookup}
    assert things.get("absent") is None
    assert "absent" not in things
    assert [] not in things


def test_a_place_is_an_entry_of_every_table():
    with pytest.raises(UntrustedCodeError, match=f"thing {HERE}:suggestion"):
        table()[f"{HERE}:suggestion"]
    consent_to(f"{HERE}:suggestion")
    assert table()[f"{HERE}:suggestion"] is suggestion
    assert lookup(table(), f"{HERE}:suggestion", "thing") is suggestion
    assert f"{HERE}:suggestion" in table()
    assert f"{HERE}:suggestion" not in list(table())


@pytest.mark.parametrize(
    ("place", "options", "message"),
    [
        (f"{HERE}:OWN", {}, f"thing {HERE}:OWN is a str, which cannot be called"),
        (
            f"{HERE}:lookup",
            {"of": f"{HERE}:Registry"},
            f"thing {HERE}:lookup is a function; define a thing as an object Registry",
        ),
        (
            f"{HERE}:absent",
            {},
            rf"thing {HERE}:absent: .*registry.py does not define 'absent', but [^?]*module defines$",
        ),
        ("loook:up", {}, "thing loook:up: there is no module 'loook'; .*; did you mean 'look-up'"),
    ],
)
def test_a_wrong_place_is_refused_in_one_line(place, options, message):
    consent_to(place)
    with pytest.raises(InputError, match=message):
        table(**options)[place]


def test_the_place_of_an_entry_of_this_project_needs_no_consent():
    assert table()[f"{HERE}:lookup"] is lookup
    assert not table().is_outside(f"{HERE}:lookup")
    assert table().is_outside(f"{HERE}:suggestion")
    assert [table().is_own(name) for name in ("near", f"{HERE}:lookup", f"{HERE}:suggestion")] == [True, True, False]


def test_installed_packages_bring_entries_and_the_list_says_where_from(install):
    install("guest", one="brought_to_tables:one")
    things = table()
    assert things["one"]() == 1
    assert list(things) == ["near", "look-up", "one"]
    assert [(entry.name, entry.description, entry.origin) for entry in things.listed()] == [
        ("near", 'Return the choice with the most similar spelling; "" if no choice is similar.', OWN),
        ("look-up", lookup.__doc__.partition("\n")[0], OWN),
        ("one", "Be one.", "guest 1.2"),
    ]


def test_packages_in_a_folder_that_entered_with_a_module_are_not_installed(install, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    install("planted", evil="brought_to_tables:number")
    consent_to("brought_to_tables:one")
    assert table()["brought_to_tables:one"]() == 1
    assert str(tmp_path) in sys.path
    assert list(table()) == ["near", "look-up"]
    with pytest.raises(UntrustedCodeError):
        table()["brought_to_tables:number"]


def test_listing_imports_nothing_from_outside(install):
    install("guest", one="brought_to_tables:one")
    table().listed()
    assert "brought_to_tables" not in sys.modules


def test_a_name_that_is_taken_leaves_a_guest_with_its_place(install):
    install("guest", near="brought_to_tables:one")
    assert table()["near"] is nearest
    assert list(table())[2:] == ["brought_to_tables:one"]
    assert table()["brought_to_tables:one"]() == 1


def test_two_guests_of_one_name_both_go_by_their_places(install):
    install("guest", one="brought_to_tables:one")
    install("other", one="brought_to_tables:other")
    assert sorted(list(table())[2:]) == ["brought_to_tables:one", "brought_to_tables:other"]
    with pytest.raises(InputError, match="no thing 'one'"):
        lookup(table(), "one", "thing")


def test_what_a_guest_brings_is_checked(install):
    install("guest", number="brought_to_tables:number")
    with pytest.raises(InputError, match="is an int, which cannot be called"):
        table()["number"]


def test_without_a_group_no_guest_is_asked(install):
    install("guest", one="brought_to_tables:one")
    assert list(Registry("thing", {"near": f"{HERE}:nearest"})) == ["near"]


@pytest.mark.parametrize(
    ("name", "choices", "expected"),
    [("margn", ["margin", "score"], "margin"), ("lr", ["learning_rate", "clip_norm", "epochs"], ""),
     ("search", ["inspect", "merge", "train"], ""), ("x", [], ""), ("euclid", ["cosine", "euclidean"], "euclidean")],
)  # fmt: skip
def test_only_a_similar_spelling_is_offered(name, choices, expected):
    assert nearest(name, choices) == expected
    possible = f"choose from {', '.join(choices)}" if choices else "there are none"
    assert suggestion(name, choices) == (f"did you mean '{expected}'?" if expected else possible)


@pytest.mark.parametrize(
    ("name", "message"),
    [("betta", "no thing 'betta'; did you mean 'beta'[?] Choose from alpha, beta$"),
     ("zzz", "no thing 'zzz'; choose from alpha, beta$"),
     ([], r"no thing \[\]; choose from"), (3, "no thing 3; choose from"),
     (None, "no thing None; choose from")],
)  # fmt: skip
def test_a_wrong_name_is_answered_with_the_possible_ones(name, message):
    with pytest.raises(InputError, match=message):
        lookup({"alpha": 1, "beta": 2}, name, "thing")


def test_joined_tables_are_one_and_the_first_wins():
    both = JoinedRegistry({"a": 1, "b": 2}, {"b": 3, "c": 4})
    assert dict(both) == {"a": 1, "b": 2, "c": 4}
    assert len(both) == 3
    assert lookup(JoinedRegistry({"a": 1}, table()), f"{HERE}:nearest", "thing") is nearest
    with pytest.raises(KeyError):
        both["d"]


def test_installed_packages_are_searched_once_a_path(monkeypatch):
    calls = []
    monkeypatch.setattr(f"{HERE}.entry_points", lambda group: calls.append(group) or ())
    monkeypatch.setattr(sys, "path", [*sys.path, "a-path-of-this-test"])
    for _ in range(3):
        assert "absent" not in table()
    assert calls == ["aadml.things_of_this_test"]
    sys.path.append("another-one")
    assert list(table()) == ["near", "look-up"]
    assert len(calls) == 2
