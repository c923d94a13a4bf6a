"""Inspection of the data of a retrieval task of mteb: queries, items (corpus) and judgments (qrels)."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aadml.data.inspection.duplicates import Duplicates, find_duplicates
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.foreign.tables import TablePart, is_table, open_tables
from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.ground.import_paths import optional
from aadml.feature_extraction.manifest import ALIASES, TEXT_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

TASK = "mteb:"
"""Prefix of a retrieval task of mteb that is passed instead of a path."""

_PARTS = {"queries": ("queries", "query"), "corpus": ("corpus",), "qrels": ("qrels", "default", "data")}
_DIRECTION = re.compile(r"(.+)#([avit])2([avit])")
_COLUMNS = {"a": ("audio",), "v": ("video",), "i": ("image",), "t": TEXT_COLUMNS}
_SIDES = ("queries", "corpus")
_SUFFIXES = ("", ".parquet", ".jsonl", ".tsv")
_BATCH = 256  # rows whose media are in memory at a time
_Cell = bytes | str | float | Mapping[str, bytes | str | None] | None


@dataclass(frozen=True)
class TaskSplit:
    """One split of a task.

    Attributes:
        queries: id and checksum of the content of each judged query.
        items: id and checksum of the content of each item.
        judgments: id of a query -> ids of its relevant items.
    """

    queries: Sequence[tuple[str, str]]
    items: Sequence[tuple[str, str]]
    judgments: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class SplitStatistics:
    """Statistics of one split; chance and ceiling are means over the queries with a relevant item.

    Attributes:
        queries: number of judged queries.
        items: number of items.
        judgments: number of relevant pairs.
        absent: number of judgments of a query or an item that the split lacks.
        unanswerable: number of queries without a relevant item.
        own_items: number of queries with the same content as an item.
        ambiguous: number of queries that no encoder can answer with an expected precision@1 of 1, because items or
            queries of equal content have different judgments.
        ceiling: largest expected precision@1 of any encoder; items of equal content are tied.
        chance: expected MAP of a random order.
        chance_first: expected precision@1 of a random order.
    """

    queries: int
    items: int
    judgments: int
    absent: int
    unanswerable: int
    own_items: int
    ambiguous: int
    ceiling: float
    chance: float
    chance_first: float


@dataclass(frozen=True)
class TaskExamination:
    """Statistics of a retrieval task; every field can be written as JSON.

    Attributes:
        task: name or folder of the task, as passed.
        splits: split -> its statistics.
        duplicates: "queries" and "items" -> contents that repeat within a split or are in two splits.
    """

    task: str
    splits: Mapping[str, SplitStatistics]
    duplicates: Mapping[str, Duplicates]


def examine_task(task: str) -> TaskExamination:
    """Return counts, duplicates, ambiguous judgments, ceiling and chance of a retrieval task (see `SplitStatistics`).

    Args:
        task: a folder, a table of clips, or the name of a task of mteb. The folder has `corpus`, `queries` and `qrels`
            (or `default`). Each of the three is a file of Parquet, JSON Lines or TSV, a folder of such files, or a data
            set saved by `datasets`. A table of clips is passed as "FOLDER#a2v". Its sounds (a) are then queries for the
            videos (v) with a common label, or of the same clip without a column `label`. Clips without a label or a
            sound are not queries, and clips without a video are not items. The other letters are i (image) and t
            (text).

    Raises:
        InputError: the task cannot be loaded, or its data are incomplete, invalid or without judgments.
        MissingExtraError: pyarrow or, for a name, mteb is not installed.
    """
    clips = _DIRECTION.fullmatch(task)
    if clips and Path(clips[1]).is_dir():
        splits = dict(_of_clips(Path(clips[1]), clips[2], clips[3]))
    elif re.search("[/#]", task) and not Path(task).is_dir():
        raise InputError(
            f"{TASK}{task} is neither a folder nor FOLDER#DIRECTION; pass a folder with corpus, queries and qrels, "
            "FOLDER#a2v for a table of clips, or the name of a task of mteb"
        )
    else:
        splits = dict(_local(Path(task)) if Path(task).is_dir() else _by_name(task))
    if not any(split.judgments for split in splits.values()):
        raise InputError(f"{TASK}{task} has no judgments; pass a task with judgments (qrels)")
    queries = _duplicates({name: split.queries for name, split in splits.items()})
    items = _duplicates({name: split.items for name, split in splits.items()})
    statistics = {name: _statistics(split) for name, split in splits.items()}
    return TaskExamination(task, statistics, {"queries": queries, "items": items})


def _duplicates(rows: Mapping[str, Sequence[tuple[str, str]]]) -> Duplicates:
    contents = [(ALIASES.get(split, split), name, content) for split, part in rows.items() for name, content in part]
    splits, ids, values = zip(*contents, strict=True) if contents else ((), (), ())
    return find_duplicates(values, splits, ids, order=tuple(dict.fromkeys(splits)))


def _statistics(split: TaskSplit) -> SplitStatistics:
    content_of, sizes = dict(split.items), Counter(content for _, content in split.items)
    items, queries = frozenset(content_of), dict(split.queries)
    relevant = {query: names & items for query, names in split.judgments.items() if query in queries}
    hits = {query: Counter(content_of[name] for name in names) for query, names in relevant.items() if names}
    ceilings = _ceilings(hits, queries, sizes)
    counts, total = np.array([sum(contents.values()) for contents in hits.values()]), len(split.items)
    return SplitStatistics(
        queries=len(split.queries),
        items=total,
        judgments=sum(map(len, split.judgments.values())),
        absent=sum(len(names - relevant.get(query, frozenset())) for query, names in split.judgments.items()),
        unanswerable=len(split.queries) - len(hits),
        own_items=sum(content in sizes for content in queries.values()),
        ambiguous=sum(value < 1 for value in ceilings),
        ceiling=float(np.mean(ceilings)) if ceilings else 0.0,
        chance=_chance(counts, total),
        chance_first=float((counts / total).mean()) if ceilings else 0.0,
    )


def _ceilings(hits: Mapping[str, Counter[str]], queries: Mapping[str, str], sizes: Counter[str]) -> list[float]:
    """Return the largest attainable precision@1 of each query with a relevant item.

    An encoder ranks items of equal content as tied, and ranks the items equally for queries of equal content. The
    value of a query is therefore the mean precision@1 of all queries of equal content, for the ranking that
    maximizes this mean. Queries without a relevant item do not count.
    """
    shares: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for query, contents in hits.items():
        shares[queries[query]].update({content: n / sizes[content] for content, n in contents.items()})
    count = Counter(queries[query] for query in hits)
    best = {content: max(items.values()) / count[content] for content, items in shares.items()}
    return [best[queries[query]] for query in hits]


def _chance(relevant: Any, items: int) -> float:
    """Compute the expected MAP of a random order: the mean of `aadml.retrieval.ties.chance` over queries.

    The result is 0 without queries.

    Args:
        relevant: (q,) number of relevant items of each query.
        items: number of ranked items.
    """
    if not len(relevant):
        return 0.0
    share = (relevant - 1) / max(items - 1, 1)
    return float((share + (1 - share) * (1 / np.arange(1.0, items + 1)).sum() / items).mean())


def _local(folder: Path) -> Iterator[tuple[str, TaskSplit]]:
    tables = {part: _part(folder, part) for part in _PARTS}
    for split, judgments in tables["qrels"].items():
        queries, corpus = (tables[part].get(split) or _only(tables[part], folder / part, split) for part in _SIDES)
        yield split or "test", _split(queries, corpus, _judgments(judgments, folder), folder)


def _of_clips(folder: Path, *kinds: str) -> Iterator[tuple[str, TaskSplit]]:
    """Yield each split of a table of clips as a task from one kind of media to another."""
    place = folder if is_table(folder) else folder / "data"
    for split, tables in _by_split(place).items():
        names = tables[0].schema.names
        asking, ranked = (_column(_COLUMNS[kind], names, place) for kind in kinds)
        queries, items, classes = list[tuple[str, str]](), list[tuple[str, str]](), defaultdict[str, set[str]](set)
        labels_of = dict[str, tuple[str, ...]]()
        for number, row in enumerate(_rows(tables, place, ())):
            clip = str(row.get("id", f"{split or 'test'}-{number}"))
            labels = _labels(row.get("label", clip))
            if _data(row[asking]) and labels:
                queries.append((clip, _checksum({asking: row[asking]})))
                labels_of[clip] = labels
            if _data(row[ranked]):
                items.append((clip, _checksum({ranked: row[ranked]})))
                for label in labels:
                    classes[label].add(clip)
        answers = {labels: frozenset[str]().union(*(classes[name] for name in labels)) for labels in labels_of.values()}
        yield split or "test", TaskSplit(queries, items, {clip: answers[labels] for clip, labels in labels_of.items()})


def _labels(value: object) -> tuple[str, ...]:
    labels = value if isinstance(value, list) else [value]
    return tuple(str(label) for label in labels if label not in (None, "", UNLABELLED))


def _column(known: Sequence[str], names: Sequence[str], place: Path) -> str:
    column = next((name for name in known if name in names), None)
    if column is None:
        wanted = " or ".join(filter(None, (", ".join(known[:-1]), known[-1])))
        raise InputError(
            f"{place} has no column {wanted} (its columns are {', '.join(names)}); pass a direction "
            "between columns of the table"
        )
    return column


def _part(folder: Path, part: str) -> dict[str, list[TablePart]]:
    names = [f"{name}{suffix}" for name in _PARTS[part] for suffix in _SUFFIXES]
    place = next((folder / name for name in names if (folder / name).exists()), None)
    if place is None:
        raise InputError(
            f"{folder} has no {part} (none of {', '.join(names)} exists); pass a folder with corpus, "
            "queries and qrels, or FOLDER#a2v for a table of clips"
        )
    return _by_split(place)


def _by_split(place: Path) -> dict[str, list[TablePart]]:
    parts: defaultdict[str, list[TablePart]] = defaultdict(list)
    for table in open_tables(place):
        parts[table.split].append(table)
    return parts


def _only(tables: Mapping[str, list[TablePart]], place: Path, split: str) -> list[TablePart]:
    if len(tables) != 1:
        wanted = f"are of the split {split}" if split else "have no split"
        names = f"the splits {', '.join(filter(None, tables))}" if tables else "no files"
        raise InputError(
            f"{place} contains {names}, but the judgments {wanted}; pass corpus, queries and qrels of the same splits"
        )
    return next(iter(tables.values()))


def _by_name(name: str) -> Iterator[tuple[str, TaskSplit]]:
    mteb = optional("mteb", f"{TASK}{name}", "mteb")
    try:
        task = mteb.get_task(name)
        task.load_data()
        subsets = task.dataset
    except Exception as error:  # mteb and datasets have no common class of errors
        raise InputError(
            f"{TASK}{name} is neither a folder nor a task that mteb can load ({cause(error)}); pass a "
            "folder with corpus, queries and qrels"
        ) from error
    for subset, parts in subsets.items():
        for split, data in parts.items():
            if not isinstance(data, Mapping) or "relevant_docs" not in data:
                raise InputError(f"{TASK}{name} is not a retrieval task; pass a task with queries and a corpus")
            judged = {q: frozenset(i for i, score in s.items() if score > 0) for q, s in data["relevant_docs"].items()}
            queries, corpus = ([_loaded(data[side].with_format("arrow")[:])] for side in _SIDES)
            yield split if len(subsets) == 1 else f"{subset}-{split}", _split(queries, corpus, judged, Path(name))


def _loaded(table: "pa.Table") -> TablePart:
    return TablePart("", table.schema, lambda _: table)


def _split(
    queries: list[TablePart], corpus: list[TablePart], judgments: Mapping[str, frozenset[str]], place: Path
) -> TaskSplit:
    judged = tuple(row for row in _contents(queries, place) if row[0] in judgments)
    return TaskSplit(judged, tuple(_contents(corpus, place)), judgments)


def _judgments(tables: list[TablePart], place: Path) -> dict[str, frozenset[str]]:
    relevant: defaultdict[str, set[str]] = defaultdict(set)
    for row in _rows(tables, place, ("query-id", "corpus-id", "score")):
        items = relevant[str(row["query-id"])]  # a query without relevant items also counts
        try:
            if float(str(row["score"])) > 0:
                items.add(str(row["corpus-id"]))
        except ValueError as error:
            raise InputError(f"{place}: score {row['score']!r} is not a number; correct the judgments") from error
    return {query: frozenset(items) for query, items in relevant.items()}


def _contents(tables: list[TablePart], place: Path) -> Iterator[tuple[str, str]]:
    """Yield id and checksum of each row. The checksum includes column names, so sound never equals video."""
    for row in _rows(tables, place, ()):
        names = [row.pop(key, None) for key in ("id", "_id")]
        name = next((each for each in names if each is not None), None)
        if name is None:
            raise InputError(
                f"{place}: a row has no id (its other columns are {', '.join(row)}); store an id in each row"
            )
        yield str(name), _checksum(row)


def _checksum(row: Mapping[str, _Cell]) -> str:
    digest = hashlib.sha256()
    for column in sorted(row):
        data = _data(row[column])
        digest.update(f"{column}:{len(data)}:".encode() + data)
    return digest.hexdigest()


def _data(value: _Cell) -> bytes:
    """Return the content of a cell; empty for a missing sound, picture or text."""
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    return value if isinstance(value, bytes) else b"" if value is None else str(value).strip().encode()


def _rows(tables: list[TablePart], place: Path, needed: Sequence[str]) -> Iterator[dict[str, _Cell]]:
    for table in tables:
        if absent := [name for name in needed if name not in table.schema.names]:
            raise InputError(
                f"{place}: the judgments have no column {absent[0]} (columns: {', '.join(table.schema.names)}); pass "
                "judgments with the columns query-id, corpus-id and score"
            )
        for batch in table.batches(_BATCH):
            yield from batch.to_pylist()
