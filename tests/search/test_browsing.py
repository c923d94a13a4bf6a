"""Pages of clips: their order, examples, and counts of the values of columns."""

from contextlib import closing

import pytest

from aadml.search.browsing import browse
from aadml.search.store import Entry, Item, connect, reading
from tests.search.small_index import FACTS, create

COLUMNS = ("caption_of", "caption_number", "caption_text", "start", "end", "few", "many", "none")


def create_index(path, count, *, classes):
    """Write clips of all columns, of which one is a caption; `few` has 40 values, `many` has 41."""
    entries = [
        Entry(
            Item(f"clip {n:03}", {}, ("test", "valid")[n % 2], f"class {n:03}" if classes else "",
                 dict(zip(COLUMNS, ("", "", "", "1", "2", f"a{n % 40:02}", f"b{n % 41:02}", ""), strict=True))),
            b"", {},
        )
        for n in range(count)
    ]  # fmt: skip
    caption = Item("clip 000#1", {}, "test", "class 000", {"caption_of": "clip 000", "caption_number": "1"})
    create(path, FACTS, dict.fromkeys(COLUMNS, "TEXT"), [*entries, Entry(caption, b"", {})])


def browsed(path, numbers=None, offset=0, limit=24):
    with closing(connect(path)) as database, reading(database, path):
        return browse(database, numbers, offset, limit)


def test_a_page_has_the_counts_of_columns_with_few_values_and_the_clips_in_a_fixed_order(tmp_path):
    create_index(tmp_path / "i", 401, classes=True)
    page = browsed(tmp_path / "i", limit=3)
    assert page.total == 401
    mixed = sorted(range(1, 402), key=lambda number: number * 40_503 % 65_521)
    assert [(number, item.id) for number, item in page.clips] == [(n, f"clip {n - 1:03}") for n in mixed[:3]]
    assert [number for number, _ in browsed(tmp_path / "i", limit=500).clips] == mixed
    assert [number for number, _ in page.examples] == [1, 2, 3]
    assert list(page.counts) == ["label", "split", "few"]  # 41 values of a column are too many
    assert (page.classes, list(page.counts["label"].items())[-1]) == (401, ("class 399", 1))
    assert page.counts["split"] == {"test": 201, "valid": 200}
    assert list(page.counts["few"].items()) == [("a00", 11), *((f"a{n:02}", 10) for n in range(1, 40))]
    part = browsed(tmp_path / "i", list(range(2, 402)), offset=1, limit=2)
    assert (part.total, [number for number, _ in part.clips]) == (400, [309, 254])
    assert part.counts.keys() == {"label", "split", "few"}
    assert len(part.counts["label"]) == part.classes == 400


def test_a_clip_of_several_classes_counts_for_each(tmp_path):
    labels = ["a", "b|a", "9", "", "c|b|a"]
    create(tmp_path / "i", FACTS, {}, [Entry(Item(f"{n}", label=label), b"", {}) for n, label in enumerate(labels)])
    page = browsed(tmp_path / "i")
    assert (page.classes, list(page.counts["label"].items())) == (4, [("a", 3), ("b", 2), ("9", 1), ("c", 1)])
    part = browsed(tmp_path / "i", [1, 3, 4])
    assert (part.classes, list(part.counts["label"].items())) == (2, [("9", 1), ("a", 1)])


@pytest.mark.parametrize(("numbers", "examples"), [(None, [34, 13, 26]), ([7], [7])])
def test_without_classes_the_first_clips_of_the_page_are_the_examples(tmp_path, numbers, examples):
    create_index(tmp_path / "i", 45, classes=False)
    page = browsed(tmp_path / "i", numbers)
    assert [number for number, _ in page.examples] == examples
    assert [number for number, _ in page.clips[:3]] == examples
    assert len(page.clips) == (24 if numbers is None else 1)
    assert "label" not in page.counts
