import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.feature_extraction.ground.errors import InputError
from aadml.papers import audio_text
from aadml.papers.audio_text import (
    PAPER_TABLES,
    laid_out,
    left_out,
    planned,
    refuse_overridden,
    reproduce_audio_text,
    runs_of,
    slug,
    starting_config,
    table_of,
)
from aadml.papers.reproduction_plan import NOTE, ReproductionPlan
from aadml.reports.tables import markdown
from aadml.retrieval.record import DirectionRecord, EvaluationRecord, ScopeCurve
from aadml.retrieval.significance import Spread
from aadml.runs.manifest import EVALUATION
from aadml.runs.store import new_run
from aadml.studies.execution import with_needed
from aadml.studies.grid import Overrides
from aadml.studies.sweep import SweepOutcome
from tests.reports.parsed_html import words

BASES = {"mei": ("audio_text", "mei_audiocaps", "mei_clotho"), "3cmlf": ("3cmlf_audiocaps", "3cmlf"),
         "xie": ("xie_clotho", "xie")}  # fmt: skip


def starting(preset):
    return resolve(open_config(preset).values)


@pytest.mark.parametrize(("name", "base"), [(name, base) for name, bases in BASES.items() for base in bases])
def test_every_row_is_a_config_that_resolves(name, base):
    for dataset in ("AudioCaps", "Clotho"):
        rows = planned(name, starting(base), dataset)
        assert rows
        assert len({slug(row.cells) for row, _ in rows}) == len(rows), "every row has run folders of its own"
        for row, config in rows:
            assert config.method == row.method


@pytest.mark.parametrize(("name", "dataset", "rows"), [("mei", "AudioCaps", 12), ("mei", "Clotho", 8),
                                                      ("3cmlf", "AudioCaps", 14), ("xie", "Clotho", 8)])  # fmt: skip
def test_every_row_finds_its_published_figures(name, dataset, rows):
    weights = {} if name == "xie" else {"method.audio_weights": "some.pth"}
    base = Overrides(weights).applied(starting(BASES[name][0]))
    found = [row for row, _ in planned(name, base, dataset)]
    table = laid_out(name, found, [[] for _ in found], dataset=dataset, data="nothing")
    printed = [line[-6:] for line in table.rows]
    assert sum(None not in line for line in printed) == rows
    assert len(set(printed) - {(None,) * 6}) == rows, "no two rows show the same published figures"


@pytest.mark.parametrize(
    ("name", "key"),
    [("mei", "loss"), ("mei", "loss.margin"), ("mei", "method.freeze"), ("xie", "method.strategy"), ("xie", "seed"),
     ("3cmlf", "method"), ("3cmlf", "data")],
)  # fmt: skip
def test_a_setting_that_all_rows_have_of_their_own_is_refused(name, key):
    with pytest.raises(InputError, match=f"--set {key}: reproduce sets {key} for every row of {name}"):
        refuse_overridden(name, ["training.batch", key], "AudioCaps")


@pytest.mark.parametrize("name", BASES)
def test_settings_that_rows_share_are_taken(name):
    refuse_overridden(name, ["training.batch", "training.epochs", "method.audio_weights", "method.dimension"], "Clotho")


def test_pretrained_rows_need_weights():
    base = starting("3cmlf_audiocaps")
    kinds = {row.cells[0] for row, _ in planned("3cmlf", base, "AudioCaps")}
    assert kinds == {"from scratch"}
    sentence = left_out("3cmlf", [row for row, _ in planned("3cmlf", base, "AudioCaps")])
    assert sentence.startswith("3cmlf: 7 rows need published weights and are left out (pre-trained ")
    assert sentence.endswith("; pass --set method.audio_weights=FILE to include these rows")
    base = Overrides({"method.audio_weights": "ResNet38.pth"}).applied(base)
    rows = planned("3cmlf", base, "AudioCaps")
    assert not left_out("3cmlf", [row for row, _ in rows])
    assert {row.cells[0] for row, _ in rows} == {"from scratch", "pre-trained"}
    for row, config in rows:
        weights = config["method"]["audio_weights"]
        assert (weights == "untrained") == (row.cells[0] == "from scratch")


def test_one_model_mines_the_batches_of_all_rows():
    base = starting("3cmlf_audiocaps")
    for changes, batch in (({}, base.training.batch), ({"method.ancillary_batch": 7}, 7)):
        rows = planned("3cmlf", Overrides(changes).applied(base), "AudioCaps")
        sizes = {config.options.plain()["ancillary_batch"] for row, config in rows if row.method == "3cmlf"}
        assert sizes == {batch}


def test_the_runs_marked_in_the_paper_learn_more_slowly_on_clotho():
    rates = {
        row.cells: config.training.learning_rate for row, config in planned("mei", starting("mei_clotho"), "Clotho")
    }
    slow = {cells for cells, rate in rates.items() if rate == 5e-5}
    assert slow == {("frozen", "triplet-weighted"), ("fine-tuned", "triplet-max"), ("fine-tuned", "triplet-weighted")}


def direction(value, figures):
    return DirectionRecord(
        map=value, map_bounds=[0.0, 1.0], map_interval=[0.0, 1.0], chance=0.1, tie_rate=0.0, queries=9,
        queries_without_relevant=0, gallery=9, scope=ScopeCurve([], [], [], []), by_class={}, figures=figures,
    )  # fmt: skip


def record(text_audio, audio_text):
    return EvaluationRecord(
        protocol="inductive", split="test", similarity="cosine", chance=0.1, tie_rate=0.0,
        map_mean=(text_audio.map + audio_text.map) / 2,
        directions={"text-audio": text_audio, "audio-text": audio_text},
    )  # fmt: skip


def figures_of_one_run():
    """A whole evaluation in which no two figures are equal."""
    sides = []
    for offset in (0.0, 0.5):
        kinds = (("hit_rate_at", 0.1), ("recall_at", 0.2))
        figures = {(kind, str(k)): offset + start + k / 100 for kind, start in kinds for k in (1, 5, 10, 50)}
        sides.append(direction(offset + 0.01, figures))
    return record(*sides)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mei", {"T2A R@1": 11, "T2A R@5": 15, "T2A R@10": 20, "A2T R@1": 61, "A2T R@5": 65, "A2T R@10": 70}),
        ("3cmlf", {"T2A R@1": 11, "T2A R@5": 15, "T2A R@10": 20, "A2T R@1": 61, "A2T R@5": 65, "A2T R@10": 70}),
        (
            "xie",
            {
                "T2A mAP": 0.01,
                "T2A recall@5": 0.25,
                "T2A recall@10": 0.3,
                "A2T mAP": 0.51,
                "A2T recall@5": 0.75,
                "A2T recall@10": 0.8,
            },
        ),
    ],
)
def test_every_column_shows_its_own_figure_in_the_unit_of_the_paper(name, expected):
    rows = [row for row, _ in planned(name, starting(BASES[name][0]), "Clotho")][:1]
    table = laid_out(name, rows, [[figures_of_one_run()]], dataset="Clotho", data="nothing")
    shown = dict(zip(table.columns, table.rows[0], strict=True))
    assert {column: shown[column].mean for column in PAPER_TABLES[name].figures} == pytest.approx(expected)
    assert {len(value.split()) for row in PAPER_TABLES[name].rows for value in row.published.values()} == {6}


def test_the_sizes_of_the_networks_are_one_set_small_and_one_published():
    sizes = ("audio", "audio_width", "augment", "text", "text_layers", "text_dimension", "vocabulary", "dropout",
             "hidden", "dimension")  # fmt: skip
    training = ("batch", "learning_rate", "schedule", "schedule_factor")
    for small, *others in (("audio_text", "3cmlf"), ("mei_audiocaps", "3cmlf_audiocaps")):
        of = resolve(open_config(small).values)
        for other in (resolve(open_config(name).values) for name in others):
            assert {key: of["method"][key] for key in sizes} == {key: other["method"][key] for key in sizes}
            assert {key: of["training"][key] for key in training} == {key: other["training"][key] for key in training}
    configs = {name: open_config(name).resolve() for names in BASES.values() for name in names}
    batches = {name: config.training.batch for name, config in configs.items()}
    assert {name for name, batch in batches.items() if batch != 32} == {"mei_clotho"}


@pytest.mark.parametrize(("name", "dataset", "config"), [
    ("mei", None, "audio_text"), ("3cmlf", None, "3cmlf"), ("xie", None, "xie"), ("mei", "Clotho", "mei_clotho"),
    ("mei", "AudioCaps", "mei_audiocaps"), ("3cmlf", "AudioCaps", "3cmlf_audiocaps"), ("xie", "Clotho", "xie_clotho"),
])  # fmt: skip
def test_a_table_has_the_published_sizes_where_a_data_set_is_named(name, dataset, config):
    assert starting_config(name, dataset) == config


def test_ours_stand_beside_the_published_figures_with_their_spread(tmp_path):
    runs = runs_of("xie", starting("xie_clotho").on("sets"), (0, 1), tmp_path, dataset="Clotho")
    assert len({job.folder for run in runs for job in run.jobs}) == 16
    for seed, job in enumerate(runs[2].jobs):
        side = direction(0.1 + 0.1 * seed, {("recall_at", "5"): 0.5})
        with new_run(job.folder) as store:
            store.commit({EVALUATION: json.dumps(record(side, side).to_json()).encode()})
    table = table_of("xie", runs, dataset="Clotho")
    row = dict(zip(table.columns, table.rows[2], strict=True))
    assert row["strategy"] == "cross-modality hard"
    assert row["T2A mAP"] == Spread(pytest.approx(0.15), pytest.approx(0.0707, abs=1e-3), 2)
    assert row["T2A recall@10"] is None
    assert row["published T2A mAP"] == "0.007"
    assert table.rows[0][1] is None


@pytest.fixture
def curriculum(monkeypatch, tmp_path):
    """Reproduce rows of 3cmlf that need one another, and one that needs weights; runs are planted, and one fails."""
    rows = PAPER_TABLES["3cmlf"].rows
    few = replace(PAPER_TABLES["3cmlf"], rows=(rows[0], rows[2], rows[7]))
    monkeypatch.setitem(PAPER_TABLES, "3cmlf", few)
    monkeypatch.setattr(
        audio_text, "with_sample_data", lambda config, note: config.on(config.common.data or "synthetic:sample")
    )
    monkeypatch.setattr(audio_text, "load_splits", lambda config: SimpleNamespace(train=range(200)))

    def planted(plan, jobs):
        jobs = with_needed(jobs)
        for job in jobs[:-1]:
            found = replace(figures_of_one_run(), epochs=job.config.training.epochs, steps=9)
            with new_run(job.folder) as store:
                content = json.dumps(found.to_json()).encode()
                stage = json.dumps(replace(found, epochs=1, steps=4).to_json()).encode()
                store.commit({EVALUATION: content, "evaluations/inductive-test-easy.json": stage})
        return [*map(SweepOutcome, jobs[:-1]), SweepOutcome(jobs[-1], "no disk")]

    monkeypatch.setattr(ReproductionPlan, "reproduce", planted)
    notes = []

    def run(data, **options):
        plan = ReproductionPlan(
            folder=tmp_path / "out", seeds=range(2), confirm=pytest.fail, note=notes.append, **options
        )
        return reproduce_audio_text("3cmlf", data, plan), notes

    return run


TABLE = """\
{caption} 3CMLF, tables I to III (hit rates in %, one run). Ours: {data}, test split, protocol inductive, 2 seed(s).

| audio network | training | {figures} | epochs | steps | seeds | published {published} |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | --- | --- | --- | --- |
| from scratch | plain | 11.0 ± 0.0 | 15.0 ± 0.0 | 20.0 ± 0.0 | 61.0 ± 0.0 | 65.0 ± 0.0 | 70.0 ± 0.0 | {epochs} \
| 9 | 2 | {plain} |
| from scratch | stage 1 | 11.0 | 15.0 | 20.0 | 61.0 | 65.0 | 70.0 | 1 | 4 | 1 | {stage} |

- The published columns are results on AudioCaps. Our columns are results on the data named above, with each item \
embedded independently. The chance level of mAP in our runs is 0.100.
- Batches are mined with the embeddings of the plain model. This model is trained once per seed and shared by \
the rows. Its {epochs} epochs and 9 steps are not included in those of the rows. Stages 1 to 3 are one run, scored \
at the end of each stage.
- from scratch stage 1: no disk
"""
PAGE_NOTE = "Every item is embedded on its own; the published results cannot be compared directly with ours."


@pytest.mark.parametrize("data_set", [None, "audiocaps", "clotho"])
@pytest.mark.parametrize("quick", [True, False])
def test_a_reproduction_has_a_table_and_a_page_of_each_data_set(curriculum, tmp_path, data_set, quick):
    (tmp_path / "given").mkdir()
    data = {} if data_set is None else {data_set: str(tmp_path / "given")}
    limit = None if quick else 5
    result, notes = curriculum(data, quick=quick, max_epochs=limit, command="aadml reproduce 3cmlf")
    rows = PAPER_TABLES["3cmlf"].rows
    plain, stage = (" | ".join(row.published["AudioCaps"].split()) for row in rows[:2])
    columns = list(PAPER_TABLES["3cmlf"].figures)
    warnings = [NOTE] * quick + ["The networks are narrower than those of the paper."] * (quick or data_set is None)
    expected = TABLE.format(
        caption=" ".join(warnings), data=data.get(data_set, "synthetic:sample"), epochs=3 if quick else 5, plain=plain,
        stage=stage, figures=" | ".join(columns), published=" | published ".join(columns),
    ).lstrip()  # fmt: skip
    (table,) = result.tables
    assert markdown(table) == expected
    assert (tmp_path / "out" / f"3cmlf-{data_set or 'sample'}.csv").is_file()
    assert [note.partition(" (")[0] for note in notes] == ["3cmlf: 1 rows need published weights and are left out"]
    shown = words(result.page.read_text().partition("<body>")[2]).splitlines()
    assert shown[:2] == ["Reproduction of a paper", "3CMLF, reproduced"]
    assert shown.index(PAGE_NOTE) < shown.index(f"3cmlf on {data_set or 'sample'}") < shown.index("T2A R@1")
    beside = shown[shown.index("Beside the published results") :]
    assert beside[1:6] == ["audio network", "training", "T2A R@1", "published T2A R@1", "T2A R@5"]
    assert beside.index("aadml reproduce 3cmlf") > 0
    assert (NOTE in shown) is quick
    dimension = 128 if quick or data_set is None else 1024
    assert {outcome.job.config.options.plain()["dimension"] for outcome in result.outcomes} == {dimension}
