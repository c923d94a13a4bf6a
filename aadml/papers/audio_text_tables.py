"""The tables of the audio-text papers: which run makes each row, and what the paper printed there."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aadml.configuration.overrides import with_setting
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject, inner, nested
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods.training.settings import Training
from aadml.reports.tables import Cell, Table
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.significance import spread
from aadml.studies.comparison_rows import NAMED
from aadml.studies.published_figures import read_published

Change = tuple[str, Any]
_OBJECTIVES = ("triplet-sum", "triplet-max", "triplet-weighted", "nt-xent")
_SLOWER_ON_CLOTHO = {
    ("frozen", "triplet-weighted"), ("fine-tuned", "triplet-max"), ("fine-tuned", "triplet-weighted"),
}  # fmt: skip
Figure = tuple[str, str, float]
_RELEASED: dict[str, tuple[Change, ...]] = {"nt-xent": (("loss.mask_same_id", False), ("loss.reduction", "mean"))}
"""What makes an objective the released one of Mei et al., where it differs from what its name stands for here."""
DATASETS = {"audiocaps": "AudioCaps", "clotho": "Clotho"}
"""Name of a data set here -> in the papers."""


@dataclass(frozen=True)
class PaperRow:
    """A row of a paper's table.

    Attributes:
        cells: what names the row, one text a naming column.
        method: of METHODS.
        changes: of the config the table starts from.
        published: where its figures stand in the published file: column -> value.
        weights: whether the row means published weights, and is left out where none are given.
        stage: whose best weights the row scores, where several rows are read off one run; "" is the last.
    """

    cells: tuple[str, ...]
    method: str
    changes: tuple[Change, ...]
    published: Mapping[str, str]
    weights: bool = False
    stage: str = ""


@dataclass(frozen=True)
class PaperTable:
    """A paper's table.

    Attributes:
        source: the paper, in words.
        naming: the columns that name a row.
        figures: column -> direction, metric, and the factor that makes it the paper's unit.
        file: of the published figures.
        columns: the published columns, in the order of `figures`.
        rows: data set -> its rows.
    """

    source: str
    naming: tuple[str, ...]
    figures: Mapping[str, Figure]
    file: str
    columns: tuple[str, ...]
    rows: Callable[[str], list[PaperRow]]


def _hit_rates() -> dict[str, Figure]:
    sides = {"T2A": "text-audio", "A2T": "audio-text"}
    return {f"{short} R@{k}": (name, f"hit-rate@{k}", 100.0) for short, name in sides.items() for k in (1, 5, 10)}


def _xie_figures() -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for short, name in {"T2A": "text-audio", "A2T": "audio-text"}.items():
        figures[f"{short} mAP"] = (name, "map", 1.0)
        for k in (5, 10):
            figures[f"{short} recall@{k}"] = (name, f"recall@{k}", 1.0)
    return figures


def _mei_rows(dataset: str) -> list[PaperRow]:
    """Tables 1 and 2: objectives, frozen and fine-tuned; a batch of 128."""
    rows = []
    for setting, freeze in (("frozen", "both"), ("fine-tuned", "none")):
        for loss in _OBJECTIVES:
            published = {"paper": "Mei2022", "table": "1", "dataset": dataset, "objective": loss, "setting": setting}
            changes = (("method.freeze", freeze), *_objective(loss))
            if dataset == "Clotho" and (setting, loss) in _SLOWER_ON_CLOTHO:
                changes = (*changes, ("training.learning_rate", 5e-5))
            rows.append(PaperRow((setting, loss), "audio-text", changes, published))
    for loss in _OBJECTIVES:
        changes = (("method.freeze", "both"), *_objective(loss), ("training.batch", 128))
        published = {"paper": "Mei2022", "table": "2", "dataset": dataset, "objective": loss}
        rows.append(PaperRow(("frozen, batch 128", loss), "audio-text", changes, published))
    return rows


def _objective(loss: str) -> tuple[Change, ...]:
    return (("loss", loss), *_RELEASED.get(loss, ()))


def _3cmlf_rows(dataset: str) -> list[PaperRow]:
    """Tables I, II and III: plain and in stages, stage by stage, and batch sizes."""
    rows = []
    for kind, weights in (("from scratch", False), ("pre-trained", True)):
        scratch = _RELEASED["nt-xent"] + (() if weights else (("method.audio_weights", "untrained"),))
        plain = {"paper": "3CMLF", "table": "1", "setting": f"ResNet38+BERT {kind}"}
        rows.append(PaperRow((kind, "plain"), "audio-text", scratch, plain, weights))
        for name, changes, table, stage in (
            ("without mining", (("method.mining", False),), "1", ""),
            ("stage 1", (("method.score_stages", True),), "2", "easy"),
            ("stage 2", (("method.score_stages", True),), "2", "median"),
            ("stage 3", (("method.score_stages", True),), "2", ""),
            ("batch 16", (("training.batch", 16),), "3", ""),
            ("batch 64", (("training.batch", 64),), "3", ""),
        ):
            published = {"paper": "3CMLF", "table": table, "setting": f"3CMLF {kind} {name}"}
            rows.append(PaperRow((kind, name), "3cmlf", (*scratch, *changes), published, weights, stage))
    return rows


def _xie_rows(dataset: str) -> list[PaperRow]:
    """The table of strategies."""
    from aadml.methods.audio_text.negative_sampling import STRATEGIES

    spelled = {name: re.sub("^(cross-modality|text-based|audio-based)-", r"\1 ", name) for name in STRATEGIES}
    return [
        PaperRow((spelled[name],), "xie", (("method.strategy", name),), {"strategy": spelled[name]})
        for name in STRATEGIES
    ]


_RECALLS = ("t2a_r1", "t2a_r5", "t2a_r10", "a2t_r1", "a2t_r5", "a2t_r10")

PAPER_TABLES: dict[str, PaperTable] = {
    "mei": PaperTable(
        "Mei et al. 2022, tables 1 and 2 (hit rates in %, mean of three seeds)", ("setting", "objective"),
        _hit_rates(), "audio_text.csv", _RECALLS, _mei_rows,
    ),
    "3cmlf": PaperTable(
        "3CMLF, tables I to III (hit rates in %, one run)", ("audio network", "training"),
        _hit_rates(), "audio_text.csv", _RECALLS, _3cmlf_rows,
    ),
    "xie": PaperTable(
        "Xie et al. 2022 (mAP and recall over all relevant items)", ("strategy",), _xie_figures(),
        "negative_sampling.csv",
        ("t2a_map", "t2a_recall5", "t2a_recall10", "a2t_map", "a2t_recall5", "a2t_recall10"), _xie_rows,
    ),
}  # fmt: skip


def starting_config(name: str, dataset: str | None) -> str:
    """Name the shipped config a table starts from: of the published sizes, or narrow where no data set is named."""
    if dataset is None:
        return {"mei": "audio_text", "3cmlf": "3cmlf", "xie": "xie"}[name]
    return {"mei": f"mei_{dataset.lower()}", "3cmlf": "3cmlf_audiocaps", "xie": "xie_clotho"}[name]


def own_dataset(name: str) -> str:
    """Name the data set that the figures of a table were published on; the first of several."""
    return "Clotho" if name == "xie" else "AudioCaps"


def planned(name: str, values: JsonObject, dataset: str) -> list[tuple[PaperRow, dict[str, Json]]]:
    """Lay out the config of every row of a table.

    Args:
        name: a key of PAPER_TABLES.
        values: the config the table starts from; options that a row's method does not take are left out.
        dataset: "AudioCaps" or "Clotho".
    """
    pairs = []
    given = nested(values, "method") or {"name": values.get("method")}
    for row in lookup(PAPER_TABLES, name, "table").rows(dataset):
        if row.weights and given.get("audio_weights", "untrained") == "untrained":
            continue
        complete: dict[str, Json] = {**values, "method": _taken(row.method, given)}
        if row.method == "3cmlf":  # one model makes the batches of all rows, whatever their own size
            batch = given.get("ancillary_batch") or inner(values, "training", "batch") or Training().batch
            complete = with_setting(complete, "method.ancillary_batch", batch)
        for key, value in row.changes:
            complete = with_setting(complete, key, value)
        pairs.append((row, complete))
    return pairs


def refuse_overridden(name: str, keys: Iterable[str], dataset: str) -> None:
    """Refuse settings that no row would have, since all have their own.

    Args:
        name: a key of PAPER_TABLES.
        keys: that were set.
        dataset: "AudioCaps" or "Clotho".

    Raises:
        InputError: such a setting.
    """
    rows = [row.changes for row in lookup(PAPER_TABLES, name, "table").rows(dataset)]
    for key in keys:
        if key in NAMED or all(any(f"{key}.".startswith(f"{own}.") for own, _ in changes) for changes in rows):
            raise InputError(f"--set {key}: every row of {name} has its own {key}; it cannot be set for all")


def _taken(method: str, given: JsonObject) -> JsonObject:
    from aadml.feature_extraction.ground.options import schema
    from aadml.methods import METHODS

    known = schema(METHODS[method])
    return {"name": method, **{key: value for key, value in given.items() if key in known}}


def laid_out(
    name: str, rows: Sequence[PaperRow], results: Sequence[Sequence[EvaluationRecord]], *, dataset: str, data: str
) -> Table:
    """Lay a table out.

    Args:
        name: a key of PAPER_TABLES.
        rows: of the table.
        results: a row's evaluations, one a seed, as in `evaluation.json`.
        dataset: whose published figures stand beside ours.
        data: what ours were measured on.
    """
    table = lookup(PAPER_TABLES, name, "table")
    lines: list[tuple[Cell, ...]] = []
    known = read_published(table.file)
    for row, found in zip(rows, results, strict=True):
        ours: list[Cell] = []
        for direction, metric, factor in table.figures.values():
            values = [value for result in found if (value := result.figure(metric, direction)) is not None]
            ours.append(spread([factor * value for value in values]) if values else None)
        printed = _printed(row, known, table.columns)
        cost = [_mean(record.epochs for record in found), _mean(record.steps for record in found)]
        lines.append((*row.cells, *ours, *cost, len(found), *printed))
    published = tuple(f"published {column}" for column in table.figures)
    seeds = max((len(found) for found in results), default=0)
    of = own_dataset(name) if name != "mei" else dataset
    chances = [result.chance for found in results for result in found]
    level = f" The chance level of mAP is {sum(chances) / len(chances):.3f} there." if chances else ""
    return Table(
        columns=(*table.naming, *table.figures, "epochs", "steps", "seeds", *published),
        rows=tuple(lines),
        caption=f"{table.source}. Ours: {data}, test split, protocol inductive, {seeds} seed(s).",
        notes=(f"The published columns are of {of}, ours of the data named above, each item embedded alone.{level}",),
        digits=1 if name != "xie" else 3,
    )


def _mean(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return round(sum(known) / len(known)) if known else None


def _printed(row: PaperRow, known: Sequence[Mapping[str, str]], columns: Sequence[str]) -> list[Cell]:
    for line in known:
        if all(_agrees(key, wanted, line[key]) for key, wanted in row.published.items()):
            return [line[column] for column in columns]
    return [None] * len(columns)


def _agrees(key: str, wanted: str, found: str) -> bool:
    # the settings of Mei et al. carry remarks on learning rate and batch size behind them
    if key == "setting" and wanted in ("frozen", "fine-tuned"):
        return found.split(" (")[0] == wanted
    return found == wanted


def slug(cells: Sequence[str]) -> str:
    """Name a row's runs."""
    return re.sub("[^a-z0-9]+", "-", " ".join(cells).lower()).strip("-")
