"""The script that tests the tests: on a tree of one function, with tests that notice everything, or nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="comes with the extra `mutation`")
pytest.importorskip("coverage", reason="comes with the extra `mutation`")

ROOT = Path(__file__).parents[2]
SOURCE = "def area(width, height):\n    return width * height\n"
STRICT = "from room import area\n\n\ndef test_area():\n    assert area(3, 5) == 15\n"
BLIND = "from room import area\n\n\ndef test_area():\n    area(3, 5)\n"
HANGING = "from room import area\n\n\ndef test_area():\n    while area(3, 5) != 15:\n        pass\n"


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tests" / "room").mkdir(parents=True)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "__init__.py").write_text(SOURCE)
    (tmp_path / "tests" / "room" / "test_area.py").write_text(STRICT)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def mutate(tree, *more):
    command = [sys.executable, str(ROOT / "scripts" / "mutation" / "mutate.py"), "room", "--root", str(tree), *more]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
def test_mutants_die_of_tests_that_notice(tree):
    done = mutate(tree)
    assert done.returncode == 0, done.stderr
    assert "room: 0 of 1 mutants survive (seed 0)" in done.stdout


@pytest.mark.slow
def test_survivors_are_shown_with_their_place_and_the_tree_is_left_alone(tree):
    (tree / "tests" / "room" / "test_area.py").write_text(BLIND)
    done = mutate(tree)
    assert done.returncode == 1
    assert "room/__init__.py:2 ReplaceBinaryOperator_Mul_" in done.stdout
    assert "-    return width * height" in done.stdout
    assert "room: 1 of 1 mutants survive" in done.stdout
    assert (tree / "room" / "__init__.py").read_text() == SOURCE


@pytest.mark.slow
def test_a_larger_share_may_be_allowed_to_survive(tree):
    (tree / "tests" / "room" / "test_area.py").write_text(BLIND)
    assert mutate(tree, "--most", "1").returncode == 0


@pytest.mark.slow
def test_tests_that_fail_without_any_mutant_are_named_and_notice_nothing(tree):
    (tree / "tests" / "room" / "test_area.py").write_text(BLIND + "\n\ndef test_no():\n    assert area(3, 5) == 16\n")
    done = mutate(tree)
    assert done.returncode == 1
    assert "tests/room/test_area.py::test_no fails without any change" in done.stderr
    assert "room: 1 of 1 mutants survive" in done.stdout


def test_a_survivor_is_made_again_wherever_its_lines_stand_today(modules, tmp_path):
    import log

    before = "a = 1\n\n\ndef f(b):\n    c = b\n    return c + 1\n"
    mutant = modules[0].Mutant(Path("m.py"), 6, "by hand", before, before.replace("+", "-"))
    trial = log.Trial.of(mutant, "room", 7, "survives", 1.0, "")
    (tmp_path / "m.py").write_text(f"import os\n{before}")
    again = trial.mutant(tmp_path)
    assert (again.line, again.after) == (7, f"import os\n{mutant.after}")
    assert again.change() == mutant.change()
    (tmp_path / "m.py").write_text(before.replace("c", "d"))
    assert trial.mutant(tmp_path) is None


def test_the_copy_of_a_tree_keeps_its_links(modules, tree, tmp_path_factory):
    (tree / "tests" / "link").symlink_to("../room")
    scratch = tmp_path_factory.mktemp("scratch")
    modules[1].copy_tree(tree, scratch)
    assert (scratch / "tests" / "link").readlink() == Path("../room")
    assert (scratch / "tests" / "link" / "__init__.py").read_text() == SOURCE


@pytest.mark.slow
def test_a_second_call_goes_on_after_the_first_and_measures_nothing_anew(tree):
    mutate(tree)
    (tree / "tests" / "room" / "conftest.py").write_text("import nothing_of_this_name\n")  # no test would run any more
    (tree / "room" / "__init__.py").write_text(f"\n{SOURCE}")
    log = tree / ".mutation" / "0.jsonl"
    kept = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(one["word"], one["by"]) for one in kept] == [("killed", "tests/room/test_area.py::test_area")]


def test_the_page_counts_every_mutant_and_lists_the_survivors(modules, tmp_path):
    import log
    import page

    def trial(room, word, diff, by=""):
        return log.Trial(room, 7, f"{room}/m.py", 3, "by hand", diff, word, 1.0, by)

    diff = "--- m.py\n+++ m.py\n@@ -1 +1 @@\n a\n-b + c\n+b - c"
    kept = log.Log(tmp_path / "7.jsonl")
    for one in (
        trial("r", "survives", diff),
        trial("r", "killed", ""),
        trial("s", "equivalent", "", "nothing follows"),
    ):
        kept.keep(one)
    kept.keep(trial("s", "survives", diff))
    kept.keep(trial("s", "killed", diff, "test_s"))  # a test was written for it
    before = "# Mutants\n\nBy hand.\n\n## Seed 8\n\nTen.\n\n## Seed 7\n\nOld.\n\n## Seed 6\n\nSix.\n"
    text = page.markdown(log.Log(tmp_path / "7.jsonl"), before)
    assert "| `r` | 2 | 1 | 50.0 % | 1 | 0 | 0 | 0 | 1 |" in text
    assert "| `s` | 2 | 1 | 50.0 % | 1 | 0 | 1 | 0 | 0 |" in text
    assert text.index("| all | 4 | 2 | 50.0 % | 2 | 0 | 1 | 0 | 1 |") > text.index("`s`")
    change = "\n\n  ```diff\n  -b + c\n  +b - c\n  ```\n"
    assert f"### Alive\n\n- `r/m.py:3`{change}" in text
    assert f"### Survived fresh, killed today\n\n- `s/m.py:3`; test_s{change}" in text
    assert "### Equivalent\n\n- `s/m.py:3`; nothing follows\n" in text
    assert text.startswith("# Mutants\n\nBy hand.\n\n## Seed 8\n\nTen.\n\n## Seed 7\n\nCommit")
    assert text.endswith("## Seed 6\n\nSix.\n")
    assert "Old." not in text
    assert page.markdown(log.Log(tmp_path / "7.jsonl"), text) == text
    assert page.markdown(log.Log(tmp_path / "7.jsonl")).startswith(page.HEAD)


@pytest.mark.slow
def test_a_room_without_code_is_refused(tree):
    command = [sys.executable, str(ROOT / "scripts" / "mutation" / "mutate.py"), "nowhere", "--root", str(tree)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "nowhere: no Python file there" in done.stderr


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "mutation"))
    import equivalent
    import mutants
    import trial

    return mutants, trial, equivalent


def drawn(mutants, tmp_path, text, count=99, seed=0):
    (tmp_path / "module.py").write_text(text)
    return mutants.sample(tmp_path, [Path("module.py")], count, seed)


def reach_of(trial, reach, tree):
    folder = tree / ".mutation"
    return reach.measured(tree, folder, trial.test_files(tree, ["tests"]), lambda t: trial.measure(tree, folder, t))


@pytest.mark.slow
def test_a_mutant_that_hangs_is_killed(modules, tree, monkeypatch):
    import reach

    mutants, trial, _ = modules
    monkeypatch.setattr(trial, "AT_LEAST", 5.0)
    (tree / "tests" / "room" / "test_area.py").write_text(HANGING)
    mutant = mutants.Mutant(Path("room/__init__.py"), 2, "by hand", SOURCE, SOURCE.replace("*", "+"))
    assert trial.try_mutant(tree, mutant, reach_of(trial, reach, tree)).word == "timeout"
    assert (tree / "room" / "__init__.py").read_text() == SOURCE


def test_the_tests_of_a_mutant_are_those_that_run_its_function_its_own_file_first(modules, tmp_path):
    import reach

    mutants, trial, _ = modules
    text = "LIMIT = 3\n\n\ndef f(a):\n    return a + 1\n\n\nclass C:\n    def g(self, b=2):\n        return b\n"
    found = {
        f"tests/{file}.py": reach.Reach("", seconds, ["a3"], {"room/m.py": functions})
        for file, seconds, functions in [
            ("room/test_a", {"a1": 9.0, "a2": 1.0, "a3": 0.1}, {"f": ["a1", "a3"]}),
            ("room/test_m", {"m1": 1.0}, {"f": ["m1"]}),
            ("top/test_b", {"b1": 1.0, "b2": 9.0}, {"f": ["b1"], "C.g": ["b2"]}),
        ]
    }
    steps = {}
    for line in (1, 5, 9, 10):
        chosen = trial.chosen(mutants.Mutant(Path("room/m.py"), line, "by hand", text, text), found)
        steps[line] = [list(tests) for tests in chosen]
    assert steps[5] == [["m1"], ["a1"], ["b1"], ["a2"]]  # at last the others of a file of the room that reaches it
    assert steps[9] == steps[10] == [["b2"]]
    mutant = mutants.Mutant(Path("room/m.py"), 5, "by hand", text, text)
    assert [list(tests) for tests in trial.chosen(mutant, found, alone=True)] == [["m1"], ["a1"], ["b1"]]
    assert steps[1] == [["m1"], ["a1"], ["b1", "b2"], ["a2"]]  # of no function: whatever runs a part of the file


BRANCHES = """def f(a):
    if (
        a > 1
    ):
        return g(
            a,
            2,
        )
    try:
        return a
    except ValueError:
        return 0
"""


def test_a_mutant_meets_the_tests_of_its_statement_where_the_file_is_as_it_was_measured(modules):
    import reach

    lines = {reach.digest_of(BRANCHES): [([2, 3], [0, 1]), ([5, 6], [1]), ([9, 10], [0])]}
    found = {"t.py": reach.Reach("", {"small": 1.0, "large": 1.0}, [], {"m.py": {"f": ["small", "large"]}}, lines)}
    met = {line: reach.tests_reaching("m.py", BRANCHES, line, found).get("t.py") for line in range(1, 13)}
    both = {"small", "large"}
    assert [met[line] for line in (2, 4)] == [both, both]
    assert [met[line] for line in (5, 7, 8)] == [{"large"}] * 3  # also its lines that run no code of their own
    assert met[10] == {"small"}
    assert met[12] == both  # no test is known to run it: those of its function, which may run it in another process
    changed = BRANCHES.replace("> 1", "> 2")
    assert reach.tests_reaching("m.py", changed, 5, found) == {"t.py": both}


SHARED = """import pytest
from room import area
@pytest.fixture(scope="module")
def found():
    return area(3, 5)
def test_it_is_more_than_nothing(found):
    assert found > 0
def test_it_is_right(found):
    assert found == 15
def test_other():
    pass
"""


@pytest.mark.slow
def test_what_a_shared_fixture_runs_is_run_by_every_test_that_has_it(modules, tree):
    import reach

    (tree / "tests" / "room" / "test_area.py").write_text(SHARED)
    found = reach_of(modules[1], reach, tree)
    ((_, tests),) = reach.tests_reaching("room/__init__.py", SOURCE, 2, found).items()
    assert {one.partition("::")[2] for one in tests} == {"test_it_is_more_than_nothing", "test_it_is_right"}


def test_a_template_that_is_run_is_not_read_as_code(modules, tree):
    import reach

    (tree / "room" / "page.html").write_text("<b>{{ area }}</b>\n")
    run = "\n    exec(compile('width = 3', __import__('os').path.abspath('room/page.html'), 'exec'))\n"
    (tree / "tests" / "room" / "test_area.py").write_text(STRICT.rstrip() + run)
    found = reach_of(modules[1], reach, tree)
    assert list(found["tests/room/test_area.py"].functions) == ["room/__init__.py"]


def test_the_same_seed_draws_the_same_mutants(modules, tmp_path):
    text = "def f(a, b):\n    if a > b and a != 3:\n        return a - 2 * b\n    return not a\n"
    draws = [[m.after for m in drawn(modules[0], tmp_path, text, 4, seed)] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert len(set(draws[0])) == 4


def test_calls_and_transposes_are_left_out_too(modules, tmp_path):
    found = {m.after for m in drawn(modules[0], tmp_path, "def f(a):\n    a.sort()\n    return a.T @ a\n")}
    assert "def f(a):\n    pass\n    return a.T @ a\n" in found
    assert "def f(a):\n    a.sort()\n    return a @ a\n" in found


def test_annotations_are_no_place_for_a_mutant(modules, tmp_path):
    assert not drawn(modules[0], tmp_path, "def f(a: int | None) -> int | str:\n    return a\n")


def test_an_assertion_that_two_sides_are_equally_long_is_no_place_for_a_mutant(modules, tmp_path):
    assert not drawn(modules[0], tmp_path, "def f(a, b):\n    return zip(a, b, strict=True)\n")


def test_a_listed_change_is_equivalent_wherever_its_line_stands(modules, tmp_path):
    mutants, _, equivalent = modules
    listed = tmp_path / "equivalent.toml"
    listed.write_text('[[mutant]]\npath = "m.py"\nbefore = "a = b"\nafter = ["a = c"]\nreason = "b is c"\n')
    known = equivalent.read(listed)
    here = mutants.Mutant(Path("m.py"), 2, "by hand", "\n  a = b\n", "\n  a = c\n")
    assert equivalent.reason_of(here, known) == "b is c"
    assert equivalent.reason_of(mutants.Mutant(Path("m.py"), 2, "by hand", "\na = b\n", "\na = d\n"), known) is None
    assert not known[0].stands(tmp_path)
    assert all(entry.stands(ROOT) for entry in equivalent.read())
    (tmp_path / "m.py").write_text("  a = b\n")
    assert known[0].stands(tmp_path)
