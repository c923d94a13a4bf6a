"""Data of retrieval tasks: every planted defect is counted, in each form in which a task lies on a disk."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError, MissingExtraError
from aadml.retrieval import ties
from tests.cli.conftest import run

pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")


def audio(*names):
    return [{"bytes": name.encode(), "path": None} for name in names]


def task(items=("x", "y", "z"), queries=("a", "b"), pairs=(("q0", "c0"), ("q1", "c1"))):
    """Three tables of a task from sounds to videos."""
    return {
        "corpus": {"id": [f"c{i}" for i in range(len(items))], "video": audio(*items)},
        "queries": {"id": [f"q{i}" for i in range(len(queries))], "audio": audio(*queries)},
        "qrels": {"query-id": [q for q, _ in pairs], "corpus-id": [c for _, c in pairs], "score": [1] * len(pairs)},
    }


def write(folder, splits):
    for split, tables in splits.items():
        for part, columns in tables.items():
            (folder / part).mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), folder / part / f"{split}-00000-of-00001.parquet")
    return f"mteb:{folder}"


def only(examination):
    (figures,) = examination.splits.values()
    return figures


def test_a_sound_task_passes_with_its_chance(tmp_path):
    source = write(tmp_path, {"test": task()})
    figures = only(aadml.inspect(source))
    assert (figures.queries, figures.items, figures.judgments, figures.ceiling) == (2, 3, 2, 1.0)
    assert figures.chance == pytest.approx(ties.chance(np.array([1, 1]), 3).mean())
    assert figures.chance_first == pytest.approx(1 / 3)
    code, printed, _ = run("audit", "--mteb", tmp_path)
    assert code == 0
    assert "fail" not in printed
    assert run("inspect", source)[1].startswith("test: queries 2, items 3, judgments 2")
    assert json.loads(run("inspect", source, "--json")[1])["splits"]["test"]["items"] == 3


def test_every_planted_defect_is_counted(tmp_path):
    pairs = [("q0", "c0"), ("q1", "c1"), ("q2", "c9")]
    tables = task(items=("x", "y", "x", "x"), queries=("a", "a", "b"), pairs=pairs)
    source = write(tmp_path, {"train": task(items=("y", "v"), queries=("a", "c")), "test": tables})
    examination = aadml.inspect(source)
    figures = examination.splits["test"]
    assert (figures.absent, figures.unanswerable, figures.ambiguous) == (1, 1, 2)
    assert figures.ceiling == pytest.approx(1 / 2)
    assert examination.duplicates["items"].within == {"test": 2, "train": 0}
    assert examination.duplicates["items"].across == {"test-train": 1}
    assert examination.duplicates["queries"].across == {"test-train": 1}
    report = aadml.audit(mteb=str(tmp_path))
    assert {f.check for f in report if f.failed} == {
        "duplicate queries", "queries in two splits", "duplicate items", "items in two splits",
        "judgments of test", "ties of test",
    }  # fmt: skip
    assert run("audit", "--mteb", tmp_path)[0] == 1


def test_equal_queries_with_different_answers_have_a_ceiling(tmp_path):
    pairs = [("q0", "c0"), ("q1", "c1"), ("q2", "c2")]
    figures = only(aadml.inspect(write(tmp_path, {"test": task(queries=("a", "a", "b"), pairs=pairs)})))
    assert (figures.ambiguous, figures.ceiling) == (2, pytest.approx(2 / 3))


def test_texts_of_beir_and_a_query_that_is_an_item(tmp_path):
    for part, rows in (("corpus", "ab"), ("queries", "ac")):
        lines = [json.dumps({"_id": f"{part}{i}", "text": text}) for i, text in enumerate(rows)]
        (tmp_path / f"{part}.jsonl").write_text("\n".join(lines))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nqueries0\tcorpus1\t1\nqueries1\tcorpus0\t1\n")
    figures = only(aadml.inspect(f"mteb:{tmp_path}"))
    assert (figures.queries, figures.own_items, figures.unanswerable) == (2, 1, 0)


def test_a_cut_table_is_called_a_table(tmp_path):
    for part in ("corpus", "queries", "qrels"):
        (tmp_path / f"{part}.jsonl").write_text('{"_id": "a", "text": "b')
    with pytest.raises(InputError, match=r"queries\.jsonl cannot be read as a table"):
        aadml.inspect(f"mteb:{tmp_path}")


@pytest.mark.parametrize(("name", "asking", "ranked"), [("A2V", "audio", "video"), ("V2A", "video", "audio")])
def test_a_task_is_loaded_by_its_name(name, asking, ranked, monkeypatch):
    """As VGGSoundAVA2VRetrieval and its like in mteb 2.26: both sides are columns of one data set with equal ids."""
    datasets = pytest.importorskip("datasets", reason="the extra datasets is not installed")
    clips = {"id": ["0", "1", "2"], "audio": audio("a", "b", "b"), "video": audio("x", "y", "z")}
    data = datasets.Dataset.from_dict(clips)
    sides = {"queries": data.select_columns(["id", asking]), "corpus": data.select_columns(["id", ranked])}
    judged = {clip: {clip: 1} for clip in clips["id"]}
    test = {**sides, "relevant_docs": judged, "top_ranked": None}
    known = SimpleNamespace(load_data=lambda: None, dataset={"default": {"test": test}})
    name = f"VGGSoundAV{name}Retrieval"
    monkeypatch.setitem(sys.modules, "mteb", SimpleNamespace(get_task={name: known}.__getitem__))
    examination = aadml.inspect(f"mteb:{name}")
    figures = only(examination)
    assert (figures.queries, figures.items, figures.judgments) == (3, 3, 3)
    assert (figures.ambiguous, figures.ceiling) == (2, pytest.approx(2 / 3))  # two clips have the same sound
    assert (figures.chance, figures.chance_first) == (pytest.approx((1 + 1 / 2 + 1 / 3) / 3), pytest.approx(1 / 3))
    repeated = "queries" if asking == "audio" else "items"
    assert {kind: each.within["test"] for kind, each in examination.duplicates.items() if each.within["test"]} == {
        repeated: 1
    }
    assert f"data failed: duplicate {repeated}, ties of test" in run("audit", "--mteb", name)[1]
    other = {**test, "relevant_docs": {"0": {"0": 1, "1": 0}}}
    known.dataset = {"en": {"test": test}, "de": {"test": other, "dev": test}}
    splits = aadml.inspect(f"mteb:{name}").splits
    assert {split: figures.judgments for split, figures in splits.items()} == {"en-test": 3, "de-test": 1, "de-dev": 3}
    for wrong in ({"queries": sides["queries"]}, "data"):
        known.dataset = {"default": {"test": wrong}}
        with pytest.raises(InputError, match=f"mteb:{name} is not a retrieval task; pass a task with queries and a c"):
            aadml.inspect(f"mteb:{name}")
    with pytest.raises(InputError, match=r"^mteb:No is neither a folder nor a task that mteb can load \('No'\); pass"):
        aadml.inspect("mteb:No")
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(MissingExtraError, match="needs mteb"):
        aadml.inspect(f"mteb:{name}")


def pairs(folder, splits):
    """A copy of a data set of clips, such as AVE: sound, video and, if there are classes, a label."""
    (folder / "data").mkdir()
    for split, (sounds, videos, labels) in splits.items():
        columns = {"video": audio(*videos), "audio": audio(*sounds)} | ({"label": labels} if labels else {})
        pq.write_table(pa.table(columns), folder / "data" / f"{split}-00000-of-00001.parquet")


def test_a_data_set_of_classes_is_a_task_in_both_directions(tmp_path):
    pairs(tmp_path, {"train": ("ab", "xy", [0, 1]), "test": ("bccd", "yzvw", [1, 2, 3, 3])})
    sound, video = (aadml.inspect(f"mteb:{tmp_path}#{way}") for way in ("a2v", "v2a"))
    for examination in (sound, video):
        figures = examination.splits["test"]
        assert (figures.queries, figures.items, figures.judgments) == (4, 4, 6)  # the clips of a class
        assert figures.chance == pytest.approx(ties.chance(np.array([1, 1, 2, 2]), 4).mean())
        assert list(examination.duplicates["items"].across.values()) == [1]  # in test and train
    # the sounds c are of two classes: as queries they share one answer, as items they tie for the video of class 2
    assert (sound.splits["test"].ambiguous, sound.splits["test"].ceiling) == (2, pytest.approx(0.75))
    assert (video.splits["test"].ambiguous, video.splits["test"].ceiling) == (1, pytest.approx(0.875))
    assert sound.duplicates["queries"].within["test"] == video.duplicates["items"].within["test"] == 1
    code, printed, _ = run("audit", "--mteb", f"{tmp_path}#v2a")
    assert code == 1
    verdict = "data failed: queries in two splits, duplicate items, items in two splits, ties of test"
    assert printed.splitlines()[-1] == verdict
    assert "MAP" in printed
    report = json.loads(run("audit", "--mteb", f"{tmp_path}#v2a", "--json")[1])
    assert (report["verdict"], report["inference"], report["training"]) == (verdict, "failed", "unknown")
    assert all(finding.keys() == {"check", "verdict", "evidence"} for finding in report["findings"])


def test_clips_without_a_label_ask_nothing_and_lists_share_a_class(tmp_path):
    pairs(tmp_path, {"test": ("abcdefg", "stuvwxy", ["a", "a", None, None, "", "b", "b"])})
    figures = only(aadml.inspect(f"mteb:{tmp_path}#a2v"))
    assert (figures.queries, figures.items, figures.judgments, figures.unanswerable) == (4, 7, 8, 0)
    (more := tmp_path / "more").mkdir()
    pairs(more, {"train": ("abc", "xyz", [-1, 0, 0]), "test": ("abcd", "wxyz", [["a"], ["a", "b"], ["b"], []])})
    splits = aadml.inspect(f"mteb:{more}#a2v").splits
    assert {name: (s.queries, s.judgments) for name, s in splits.items()} == {"train": (2, 4), "test": (3, 2 + 3 + 2)}


@pytest.mark.parametrize("missing", [None, {"bytes": None, "path": None}, {"bytes": b"", "path": ""}])
def test_missing_media_are_neither_queries_nor_items(tmp_path, missing):
    sounds, videos = [missing, *audio(*"bcd"), missing], [*audio(*"vwx"), missing, missing]
    columns = {"audio": sounds, "video": videos, "label": [0, 0, 1, 1, 1]}
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "data/test-00000-of-00001.parquet")
    examination = aadml.inspect(f"mteb:{tmp_path}#a2v")
    figures = only(examination)
    assert (figures.queries, figures.items, figures.judgments, figures.absent) == (3, 3, 2 + 1 + 1, 0)
    assert (figures.ambiguous, figures.unanswerable) == (0, 0)
    assert [repeats.within for repeats in examination.duplicates.values()] == [{"test": 0}] * 2


def test_clips_without_classes_ask_for_their_partner(tmp_path):
    pairs(tmp_path, {"test": ("abc", "xyz", None)})
    for way in ("a2v", "v2a"):
        assert run("audit", "--mteb", f"{tmp_path}#{way}")[0] == 0
        figures = only(aadml.inspect(f"mteb:{tmp_path}#{way}"))
        assert (figures.judgments, figures.chance_first) == (3, pytest.approx(1 / 3))
    wanted = r"data has no column text, caption or caption_1 \(its columns are video, audio\); pass"
    with pytest.raises(InputError, match=wanted):
        aadml.inspect(f"mteb:{tmp_path}#a2t")
    with pytest.raises(InputError, match=r"has no queries .*, or FOLDER#a2v for a table of clips"):
        aadml.inspect(f"mteb:{tmp_path}")


def test_judgments_may_lie_in_the_folder_of_the_default_configuration(tmp_path):
    source = write(tmp_path, {"test": task()})
    (tmp_path / "qrels").rename(tmp_path / "data")
    assert only(aadml.inspect(source)).judgments == 2


def test_an_incomplete_copy_is_refused_in_one_line(tmp_path):
    source = write(tmp_path, {"test": task()})
    with pytest.raises(
        InputError, match=r"do not apply to a retrieval task \(passed: layout, media\); omit the options"
    ):
        aadml.inspect(source, layout="flat", media="m.csv")
    with pytest.raises(InputError, match="leave out --data"):
        aadml.audit(mteb=str(tmp_path), data="x.h5")
    with pytest.raises(InputError, match="the split is 'train', but all splits of a task are audited; leave out"):
        aadml.audit(mteb=str(tmp_path), split="train")
    for flag, options in (("--allow", {"allow": [tmp_path]}), ("--train-command", {"train_command": "x"})):
        with pytest.raises(InputError, match=f"audit: {flag} applies only to --encoder and --command; leave out"):
            aadml.audit(mteb=str(tmp_path), **options)
    pq.write_table(pa.table({"query-id": ["q0"]}), tmp_path / "qrels/test-00000-of-00001.parquet")
    with pytest.raises(InputError, match=r"the judgments have no column corpus-id \(columns: "):
        aadml.inspect(source)
    (tmp_path / "qrels/test-00000-of-00001.parquet").unlink()
    (tmp_path / "qrels").rmdir()
    with pytest.raises(InputError, match="has no qrels"):
        aadml.inspect(source)


@pytest.mark.parametrize("ids", [["010", "10"], ["2020-01-01", "2020-01-02"], [0, 1]])
def test_ids_are_compared_as_texts(ids, tmp_path):
    for part in ("corpus", "queries"):
        lines = [json.dumps({"_id": name, "text": f"{part}{n}"}) for n, name in enumerate(ids)]
        (tmp_path / f"{part}.jsonl").write_text("\n".join(lines))
    pairs = "".join(f"{name}\t{name}\t{score}\n" for name, score in zip(ids, (1, 0), strict=True))
    (tmp_path / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{pairs}")
    figures = only(aadml.inspect(f"mteb:{tmp_path}"))
    assert (figures.queries, figures.items, figures.judgments) == (2, 2, 1)
    assert (figures.absent, figures.unanswerable) == (0, 1)  # the second query is judged, and has no relevant item


def test_a_score_that_is_not_a_number_is_refused(tmp_path):
    tables = task()
    tables["qrels"]["score"] = ["high", "1"]
    with pytest.raises(InputError, match="score 'high' is not a number; correct the judgments"):
        aadml.inspect(write(tmp_path, {"test": tables}))


@pytest.mark.parametrize("task", ["nowhere/task", "nowhere#a2v", "nowhere#x2y"])
def test_a_path_without_a_folder_does_not_ask_for_mteb(task):
    with pytest.raises(
        InputError, match=f"^mteb:{task} is neither a folder nor FOLDER#DIRECTION; pass a folder with corpus"
    ):
        aadml.inspect(f"mteb:{task}")


def test_one_corpus_serves_all_splits_and_other_splits_need_their_own(tmp_path):
    tables = task()
    tables["corpus"]["id"][1] = None
    tables["corpus"]["_id"] = [None, "c1", "c9"]
    tables["corpus"]["video"][2] = {"bytes": None, "path": "x"}
    source = write(tmp_path, {"test": tables, "train": {key: tables[key] for key in ("queries", "qrels")}})
    found = aadml.inspect(source).splits
    assert {split: (figures.items, figures.absent) for split, figures in found.items()} == {
        "test": (3, 0), "train": (3, 0)
    }  # fmt: skip
    assert aadml.inspect(source).duplicates["items"].within == {"test": 1, "train": 1}  # a path of equal text
    write(tmp_path, {"valid": {"corpus": tables["corpus"]}})
    wanted = "corpus contains the splits test, valid, but the judgments are of the split train; pass"
    with pytest.raises(InputError, match=wanted):
        aadml.inspect(source)


def test_a_task_without_judgments_or_ids_is_refused(tmp_path):
    tables = task()
    tables["qrels"] = {"query-id": ["q0"], "corpus-id": ["c0"], "score": [0]}
    figures = only(aadml.inspect(write(tmp_path / "zero", {"test": tables})))
    assert (figures.queries, figures.judgments, figures.chance, figures.ceiling) == (1, 0, 0.0, 0.0)
    tables["qrels"] = {key: pa.array([], pa.string()) for key in ("query-id", "corpus-id", "score")}
    with pytest.raises(InputError, match="has no judgments; pass a task with judgments"):
        aadml.inspect(write(tmp_path / "none", {"test": tables}))
    del tables["queries"]["id"]
    with pytest.raises(InputError, match=r"a row has no id \(its other columns are audio\); store an id in each row"):
        aadml.inspect(write(tmp_path / "unnamed", {"test": tables}))


def test_the_only_item_is_found_by_chance(tmp_path):
    figures = only(aadml.inspect(write(tmp_path, {"test": task(items="x", pairs=(("q0", "c0"),))})))
    assert (figures.queries, figures.items, figures.chance, figures.chance_first) == (1, 1, 1.0, 1.0)
