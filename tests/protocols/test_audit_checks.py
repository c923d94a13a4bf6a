"""Each check of the audit on a planted case."""

import sys
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
import torch

import aadml
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import audit_checks
from aadml.protocols.audit import Case, Verdict, _judged, audit, noise_of, with_other_labels
from aadml.protocols.audit_checks import (
    CHECKS,
    duplicates,
    exact_rows,
    id_blindness,
    label_blindness,
    metric,
    nothing_dropped,
    one_modality_alone,
    selection,
)
from aadml.protocols.pipelines import FunctionPipeline, of_command
from aadml.protocols.row_changes import as_wide, largest_change
from aadml.retrieval.scores import SIMILARITIES
from tests.protocols import zoo


@pytest.mark.slow
def test_labels_that_ids_spell_are_caught(subject, tmp_path):
    script = tmp_path / "embed.py"
    script.write_text(
        "import sys, h5py, numpy as np\n"
        "with h5py.File(sys.argv[1]) as given, h5py.File(sys.argv[2], 'w') as made:\n"
        "    spelled = np.array([len(set(name)) for name in given['id'].asstr()[...]])\n"
        "    for modality in ('audio', 'visual'):\n"
        "        if modality in given:\n"
        "            made[modality] = given[modality][:, :3] + spelled[:, None]\n"
    )
    small = to_splits(synthetic(classes=2, train=8, valid=4, test=8, dimensions=(4, 5)))
    ids = tuple(f"{'abc' if y else 'a'}{'z' * i}" for i, y in enumerate(small.test.labels.tolist()))
    small = replace(small, test=replace(small.test, ids=ids))
    checks = [id_blindness, label_blindness]
    found = audit(of_command(f"{sys.executable} {script} {{input}} {{output}}"), small, checks)
    assert [one.verdict for one in found[:2]] == [Verdict.FAIL, Verdict.PASS]


def test_duplicates_across_splits_are_found(subject):
    test = subject.splits.test
    doubled = subject.splits.__class__(test.select(torch.arange(10)), subject.splits.valid, test)
    found, *_ = audit(FunctionPipeline(zoo.identity), doubled, [duplicates])
    assert found.failed
    assert "10 ids" in found.evidence


def test_duplicates_are_not_checkable_without_another_split(subject):
    alone = subject.splits.__class__.only_test(subject.splits.test)
    found, *_ = audit(FunctionPipeline(zoo.identity), alone, [duplicates])
    assert (found.verdict, found.evidence) == (Verdict.NOT_CHECKABLE, "the data have no other split to compare")


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_model_on_other_data_is_compared_with_its_training_data_by_features(subject, split):
    splits, of_clips = subject.splits, subject.splits.__class__
    scored = splits.test

    def finding(training):
        found, *_ = audit(FunctionPipeline(zoo.identity), splits, [duplicates], split=split, training=training)
        return found.verdict, found.evidence

    rows = splits[split].select(torch.arange(4))
    other = replace(scored, ids=tuple(f"other-{name}" for name in scored.ids))
    verdict, evidence = finding(of_clips(replace(rows, ids=tuple("abcd")), other if split != "test" else splits.valid))
    assert verdict is Verdict.FAIL
    assert "4 audio vectors also (or nearly) in train of the run; 0 audio vectors" in evidence
    alike = {m: torch.randn(rows.matrix(m).shape) for m in rows.modalities}
    verdict, evidence = finding(of_clips(replace(rows, features=alike)))
    assert verdict is Verdict.PASS  # ids of the run are not compared, because row numbers of other data agree
    unknown = of_clips(rows.select(torch.arange(0)))
    verdict, evidence = finding(unknown)
    assert verdict is Verdict.NOT_CHECKABLE
    assert evidence.startswith("the model's training data cannot be compared")
    splits = replace(splits, **{("valid" if split != "valid" else "train"): replace(rows, ids=tuple("abcd"))})
    assert finding(unknown)[0] is Verdict.FAIL  # the data alone show the copies


def test_media_of_other_data_cannot_be_compared_without_ids(subject):
    clips = SimpleNamespace(ids=("a",), features={"visual": object()})
    case = SimpleNamespace(clips=clips, splits=subject.splits, training=subject.splits, split="test")
    verdict, evidence = duplicates(case)
    assert verdict is Verdict.NOT_CHECKABLE
    assert evidence.endswith("or without vectors")


def test_clips_that_are_copied_with_noise_are_found(subject):
    test = subject.splits.test
    noisy = {m: test.matrix(m) + 1e-4 * test.matrix(m).std(0) for m in test.modalities}
    copied = replace(test, features=noisy, ids=tuple(f"copy-{name}" for name in test.ids))
    found, *_ = audit(FunctionPipeline(zoo.identity), replace(subject.splits, valid=copied), [duplicates])
    assert found.failed
    assert f"{len(test)} audio vectors also (or nearly) in valid" in found.evidence
    assert found.evidence.count(" = ") == 3  # examples
    clean, *_ = audit(FunctionPipeline(zoo.identity), subject.splits, [duplicates])
    assert not clean.failed


@pytest.mark.parametrize("text", [object(), torch.ones(44, 3)])
def test_captions_that_repeat_are_no_duplicates_but_vectors_beside_them_are(subject, text):
    test = subject.splits.test
    features = {"text": text, "visual": test["visual"]}
    clips = SimpleNamespace(ids=test.ids, features=features, rows=test.rows, matrix=test.matrix)
    case = SimpleNamespace(clips=clips, splits=replace(subject.splits, valid=test), split="test", training=None)
    verdict, evidence = duplicates(case)
    assert verdict is Verdict.FAIL
    assert f"{len(test)} visual vectors also (or nearly) in valid" in evidence
    assert "text" not in evidence


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(0.4, 0.34, "FAIL"), (0.4, 0.36, "PASS"), (0.9, 0.8, "FAIL"), (0.9, 0.82, "PASS"), (0.4, 0.9, "PASS")],
)
def test_exact_rows_allow_the_score_to_fall_by_a_twentieth_or_by_a_tenth_of_itself(subject, before, after, verdict):
    clips, versions = subject.splits.test, []

    def numbers(scores):
        scores(
            lambda clips: versions.append(clips) or clips.embedded({"audio": torch.eye(44), "visual": torch.eye(44)})
        )
        return before, after

    case = SimpleNamespace(clips=clips, numbers=numbers, draw=lambda n: [n])
    evidence = f"features were moved by a thousandth of their spread: MAP {before:.4f}, then {after:.4f}"
    assert exact_rows(case) == (Verdict[verdict], evidence)
    assert versions[0] is clips
    moved = {m: (versions[1].matrix(m) - clips.matrix(m)) / clips.matrix(m).std(0) for m in clips.modalities}
    assert [float(of.std()) for of in moved.values()] == pytest.approx([1e-3, 1e-3], rel=0.1)
    assert abs(float(moved["audio"].mean())) < 2e-4
    assert float(torch.corrcoef(torch.stack([of[:, 0] for of in moved.values()]))[0, 1]) < 0.9


def test_a_single_clip_has_no_spread_and_passes(subject):
    one = replace(subject.splits, test=subject.splits.test.select(torch.arange(1)))
    found, *_ = audit(FunctionPipeline(zoo.identity), one, [exact_rows])
    assert found.verdict is Verdict.PASS, found
    assert noise_of(torch.full((1, 1), 3.0), [0]).tolist() == [[3.0]]


@pytest.mark.parametrize(("count", "passed"), [(13, 1), (14, 2), (44, 2)])
@pytest.mark.parametrize("mixes", [False, True])
def test_where_the_size_of_a_batch_changes_rounding_batches_of_one_size_are_compared(subject, count, passed, mixes):
    clips, requests = subject.splits.test.select(torch.arange(count)), []

    def embed(*parts):
        requests.append([list(part.ids) for part in parts])
        return [{m: (v := part.matrix(m)) + len(part) + mixes * v.mean() for m in part.modalities} for part in parts]

    (reference,) = embed(clips)
    case = SimpleNamespace(clips=clips, reference=reference, embed=embed, scores={})
    verdict, evidence = audit_checks.batch_invariance(case)()
    assert len(requests) == 1 + passed
    assert verdict is (Verdict.PASS if passed == 2 and not mixes else Verdict.FAIL)
    action = "clips were embedded 7 at a time" + ", beside two selections of other clips" * (passed == 2)
    assert evidence.startswith(f"{action}; largest change")
    ids, batches = list(clips.ids), count // 7
    assert requests[1] == [ids[start : start + 7] for start in range(0, count, 7)]
    if passed == 2:  # the clip at place p of a batch moves by p batches
        assert requests[2][0] == [ids[p % batches * 7 + p] for p in range(7)]
        assert requests[2][1] == [ids[(1 + p) % batches * 7 + p] for p in range(7)]
        assert requests[2][batches:] == requests[1][batches:]


def test_where_the_number_of_clips_changes_rounding_each_modality_is_compared_beside_as_many_clips(subject):
    clips = subject.splits.test

    def embed_each(requests):
        return {m: of.matrix(m) + len(of) for m, of in requests.items()}

    reference = embed_each(dict.fromkeys(clips.modalities, clips))
    case = SimpleNamespace(clips=clips, reference=reference, embed_each=embed_each, scores={})
    assert one_modality_alone(case)() == (
        Verdict.PASS,
        f"each modality was embedded without the other, beside equally many clips with the other; {UNCHANGED}",
    )


class Sounds(list):
    """Features that are not vectors."""

    def select(self, rows):
        return [self[row] for row in rows]


def test_sound_and_text_are_shuffled_as_noise_and_replaced_by_the_item_before_where_vectors_are_scaled():
    assert sorted(noise_of(Sounds("abcdefgh"), [0])) == list("abcdefgh") != noise_of(Sounds("abcdefgh"), [0])
    marked = torch.tensor([False, True, False, True])
    assert audit_checks._stretched(Sounds("abcd"), marked) == list("aacc")


@pytest.mark.parametrize("count", [1, 2, 44])
def test_each_modality_alone_has_another_number_of_clips_and_one_at_least(subject, count):
    clips = subject.splits.test.select(torch.arange(count))
    requests = {}

    def embed_each(asked):
        requests.update(asked)
        return {m: one.matrix(m)[:, :2] for m, one in asked.items()}

    reference = {m: clips.matrix(m)[:, :2] for m in clips.modalities}
    case = SimpleNamespace(clips=clips, reference=reference, embed_each=embed_each, scores={})
    assert one_modality_alone(case)()[0] == Verdict.PASS
    assert {m: (one.modalities, len(one)) for m, one in requests.items()} == {
        "audio": (("audio",), count), "visual": (("visual",), max(count - 1, 1)),
    }  # fmt: skip


def test_a_change_is_relative_to_the_length_of_a_row_or_to_that_of_the_others():
    before = torch.tensor([[3.0, 4.0], [0.0, 5.0], [0.0, 0.0]])
    assert largest_change(before, before) == 0
    moved = before + torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert largest_change(before, moved) == pytest.approx(0.2)
    floor = 1e-3 * 5  # of a row of length 0
    moved = before + torch.tensor([[0.0, 0.0], [0.0, 0.0], [0.0, 1e-3]])
    assert largest_change(before, moved) == pytest.approx(1e-3 / floor)
    assert largest_change(torch.zeros(2, 2), torch.tensor([[0.0, 0.5], [0.0, 0.0]])) == pytest.approx(0.5)
    assert largest_change(before, before[:2]) == largest_change(before, before / 0) == float("inf")


@pytest.mark.parametrize("sizes", [[11, 11, 11, 11], [30, 10, 4], [2, 2], [150, 100, 100, 50], [5, 1]])
def test_no_more_clips_keep_their_label_than_must(sizes):
    labels = [name for name, size in enumerate(sizes) for _ in range(size)]
    clips = aadml.Clips.of(labels, audio=torch.zeros(len(labels), 2))
    for seed in range(20):
        other = with_other_labels(clips, [seed]).labels
        assert torch.equal(other.sort().values, clips.labels.sort().values)
        assert int((other == clips.labels).sum()) == max(2 * max(sizes) - len(labels), 0)


@pytest.mark.parametrize("seed", range(12))
def test_the_label_of_one_row_is_seen_whatever_is_drawn(subject, seed):
    found, *_ = audit(FunctionPipeline(zoo.labels_in_one_row), subject.splits, [label_blindness], seed=seed)
    assert found.failed


def test_a_giant_row_hides_no_change_of_the_others():
    before = torch.nn.functional.pad(torch.eye(6), (0, 1))
    before[0] *= 1e9
    moved = before + torch.tensor([0.0] * 6 + [0.01])
    assert largest_change(before, moved) == pytest.approx(0.01)


def test_shorter_rows_are_filled_with_zeros_and_only_tables_are():
    reference = torch.zeros(3, 4)
    assert as_wide(torch.ones(2, 3), reference).tolist() == [[1.0, 1.0, 1.0, 0.0]] * 2
    assert as_wide(torch.ones(2, 5), reference).shape == (2, 5)
    assert as_wide(torch.ones(3), reference).shape == (3,)
    assert as_wide(torch.ones(2, 2, 3), torch.zeros(2, 5, 3)).shape == (2, 2, 3)
    assert [audit_checks._verdict(change) for change in (1e-5, 1.1e-5)] == [Verdict.PASS, Verdict.FAIL]


@dataclass(frozen=True)
class Recorded(Case):
    """A case whose encoder keeps four columns, and which keeps every request."""

    requests: list = field(default_factory=list)

    def embed(self, *requests, splits=None, first=False):
        self.requests.append((requests, splits, first))
        return [{m: clips.matrix(m)[:, :4] for m in clips.modalities} for clips in requests]

    def numbers(self, compute):
        return list(compute(lambda clips: clips.embedded({m: clips.matrix(m)[:, :4] for m in clips.modalities})))


@pytest.fixture
def case(subject):
    """A case of the scored clips, with the reference."""
    pipeline = SimpleNamespace(preparation="it was fitted again", reported_map=lambda splits, split: None)
    case = Recorded(pipeline, subject.splits, "test", 1.0, 7)
    case.references.extend(case.embed(subject.splits.test))
    case.requests.clear()
    return case


UNCHANGED = "largest change of a row (relative): audio 0, visual 0"


def test_each_check_embeds_its_own_variant_of_the_clips_and_says_so(case):
    clips, outcomes = case.clips, {}
    for check in CHECKS[:8]:
        case.requests.clear()
        outcome = check(case)
        requests = [request for parts, _, _ in case.requests for request in parts]
        outcomes[check.__name__] = (outcome() if callable(outcome) else outcome), requests, case.requests[-1][1:]
    assert {name: found[0] for name, found in outcomes.items()} == {
        name: (Verdict.PASS, f"{action}; {UNCHANGED}")
        for name, action in {
            "label_blindness": "labels of the scored clips were replaced by garbage",
            "id_blindness": "ids and class names were replaced by numbers",
            "partner_blindness": "the partners were replaced by noise",
            "history": "the scored clips were embedded first instead of after noise",
            "order_invariance": "the scored clips were shuffled",
            "batch_invariance": "clips were embedded 7 at a time",
            "other_items": "every second scored clip was scaled tenfold (sound and text: replaced), and the other "
            "clips were compared",
            "one_modality_alone": "each modality was embedded without the other",
        }.items()
    }
    for changed in outcomes["label_blindness"][1]:
        assert changed.labels.tolist() != clips.labels.tolist()
        assert changed.ids == clips.ids
    (scrambled,) = outcomes["id_blindness"][1]
    assert (scrambled.ids[:2], scrambled.class_names) == (
        ("item-0", "item-1"),
        ("class-0", "class-1", "class-2", "class-3"),
    )
    audio, visual = outcomes["partner_blindness"][1]
    for request, own, other in ((audio, "audio", "visual"), (visual, "visual", "audio")):
        assert torch.equal(request.matrix(own), clips.matrix(own))
        assert float((request.matrix(other) == clips.matrix(other)).float().mean()) < 0.1
    assert [outcomes[name][2] for name in ("history", "order_invariance")] == [(None, True), (None, False)]
    (shuffled,) = outcomes["order_invariance"][1]
    assert sorted(shuffled.ids) == sorted(clips.ids) != list(shuffled.ids)
    assert [len(part) for part in outcomes["batch_invariance"][1]] == [7] * 6 + [2]
    (scaled,) = outcomes["other_items"][1]
    assert torch.equal(scaled.matrix("audio")[::2], clips.matrix("audio")[::2])
    torch.testing.assert_close(scaled.matrix("audio")[1::2], 10 * clips.matrix("audio")[1::2] + 3)
    assert outcomes["other_items"][2][0].test is scaled
    assert [request.modalities for request in outcomes["one_modality_alone"][1]] == [("audio",), ("visual",)]


def test_selection_trains_again_with_garbage_labels_three_times(case):
    evidence = (
        "it was fitted again 3 times with garbage labels on the scored clips; embeddings of other clips changed by 0"
    )
    assert selection(case) == (Verdict.PASS, f"{evidence} (relative)")
    assert [parts for parts, _, _ in case.requests] == [(case.splits.valid,)] * 4
    assert case.requests[0][1] is None
    garbage = [splits.test.labels.tolist() for _, splits, _ in case.requests[1:]]
    truth = case.clips.labels.tolist()
    assert len({tuple(labels) for labels in [*garbage, truth]}) == 4
    untrained = replace(case, pipeline=SimpleNamespace(preparation=""))
    assert selection(untrained)[0] is Verdict.NOT_CHECKABLE
    none = case.splits.valid.select(torch.arange(0))
    assert selection(replace(case, splits=replace(case.splits, valid=none))) == (
        Verdict.NOT_CHECKABLE, "the data have no other split to compare",
    )  # fmt: skip


def test_the_reported_number_is_the_map_of_the_embeddings(case):
    score = case.scores["cosine"]
    for number, expected in ((score, Verdict.PASS), (score + 2e-5, Verdict.FAIL), (None, Verdict.NOT_CHECKABLE)):
        pipeline = SimpleNamespace(reported_map=lambda splits, split, number=number: number)
        verdict, evidence = metric(replace(case, pipeline=pipeline))
        assert verdict is expected
        assert number is None or evidence == f"reported MAP {number:.5f}, MAP of the embeddings {score:.5f}"


@pytest.mark.parametrize(
    ("after", "spread", "verdict", "evidence"),
    [
        (0.5, 0.125, "FAIL", "; MAP by hamming 0.7500, then 0.5000, a fall above the range over 99 shuffles of the "
         "changes"),
        (0.5, 0.25, "PASS", "; MAP by hamming 0.7500, then 0.5000, within the range over shuffles of the changes"),
        (0.744, 0.0, "FAIL", "; MAP by hamming 0.7500, then 0.7440, a fall above the range over 99 shuffles of the "
         "changes"),
        (0.7451, 0.0, "PASS", ""), (0.8, 0.0, "PASS", ""), (float("nan"), 0.0, "PASS", ""),
    ],
)  # fmt: skip
def test_a_fall_of_the_score_by_any_similarity_is_a_failure_unless_shuffled_changes_differ_as_much(
    after, spread, verdict, evidence
):
    reference, changed, seen = {"audio": torch.ones(44, 2)}, {"audio": torch.arange(44.0)[:, None] + 1}, []

    def map_of(vectors, similarity):
        if similarity == "cosine" or torch.equal(vectors["audio"][:, :1], changed["audio"]):
            return {"cosine": 0.75, "hamming": after}[similarity]
        seen.append(tuple(vectors["audio"][:, 0].tolist()))
        return 0.5 - spread * (len(seen) % 2)

    scores = {"cosine": 0.75, "hamming": 0.75}
    case = SimpleNamespace(clips=range(44), draw=lambda n: [n], scores=scores, reference=reference, map_of=map_of)
    outcome = (Verdict.PASS, "it was changed")
    assert audit_checks._scored(case, changed, outcome) == (Verdict[verdict], f"it was changed{evidence}")
    assert len(set(seen)) in (0, 99)
    assert {tuple(sorted(values)) for values in seen} <= {tuple(range(1, 45))}
    assert audit_checks._scored(case, changed, (Verdict.FAIL, "before")) == (Verdict.FAIL, "before")
    case.scores = None
    assert audit_checks._scored(case, reference, outcome) == outcome


def test_missing_embeddings_are_counted(case):
    assert audit_checks._compared(case, case.reference, {}, "x") == (Verdict.FAIL, "0 embeddings for 44 clips")
    some = {m: rows[:40] if m == "visual" else rows for m, rows in case.reference.items()}
    assert audit_checks._compared(case, case.reference, some, "x") == (Verdict.FAIL, "40 embeddings for 44 clips")


def test_a_row_too_many_in_a_batch_fails(case):
    clips = case.clips
    parts = [{m: clips.matrix(m)[:8, :4] for m in clips.modalities}] * 7
    small = audit_checks._joined(case, torch.arange(44), parts)
    assert audit_checks._compared(case, case.reference, small, "x") == (Verdict.FAIL, "43 embeddings for 44 clips")


def test_noise_has_the_mean_and_the_spread_of_the_features():
    features = 7 + 0.3 * torch.randn(2000, 5, generator=torch.Generator().manual_seed(0))
    noise = noise_of(features, [0])
    assert noise.shape == features.shape
    assert float(noise.mean()) == pytest.approx(7, abs=0.02)
    assert float(noise.std()) == pytest.approx(0.3, rel=0.05)
    assert len(noise.unique()) > 9000  # numbers as good as any, not a few steps
    assert abs(float(torch.corrcoef(torch.stack([noise.flatten(), features.flatten()]))[0, 1])) < 0.05


def test_embeddings_that_are_missing_fail_every_check(subject):
    case = SimpleNamespace(clips=subject.splits.test, splits=subject.splits, split="test", reference={})
    assert _judged(case, nothing_dropped(case)) == (Verdict.FAIL, "0 embeddings for 44 clips")
    case.reference = {"audio": torch.ones(44, 2), "visual": torch.ones(40, 2)}
    assert _judged(case, nothing_dropped(case)) == (Verdict.FAIL, "40 embeddings for 44 clips")
    case.reference["visual"] = torch.ones(44, 2)
    assert _judged(case, nothing_dropped(case)) == (Verdict.PASS, "44 embeddings of 44 clips")

    def control():
        raise InputError("too long")

    assert _judged(case, control) == (Verdict.FAIL, "the clips could not be embedded: too long")


def test_without_a_row_of_one_width_for_each_clip_there_is_no_map(case):
    rows = case.reference
    assert {name: case.map_of(rows, name) for name in SIMILARITIES} == case.scores
    assert len(set(case.scores.values())) > 1
    assert all(0 < score < 1 for score in case.scores.values())
    absent = {m: torch.where(torch.arange(44)[:, None] > 0, of, torch.nan) for m, of in rows.items()}
    assert 0 < case.map_of(absent, "cosine") < 1
    wide, short = {"audio": rows["audio"], "visual": rows["visual"][:, :3]}, {m: of[1:] for m, of in rows.items()}
    maps = [case.map_of(vectors, "cosine") for vectors in (wide, short, {})]
    assert [torch.tensor(score).isnan().item() for score in maps] == [True] * 3


@dataclass(frozen=True)
class SeesEveryLabel:
    """A pipeline that fits, or embeds by, all labels of clips that may have several, and never looks at the first."""

    fits: bool
    preparation: str = "it was fitted again"
    surroundings: str = ""
    channels: tuple = ()

    def embedder(self, splits, split):
        fitted = splits[split].all_labels.float().T @ splits[split].matrix("audio")[:, :1]

        def embed(clips):
            seen = fitted[0] if self.fits else clips.all_labels.float()
            return clips.embedded({m: clips.matrix(m)[:, :4] + seen for m in clips.modalities})

        return embed

    def reported_map(self, splits, split):
        return None


@pytest.mark.parametrize(("fits", "check"), [(False, "label blindness"), (True, "selection")])
def test_garbage_takes_the_place_of_all_labels_of_clips_that_have_several(subject, fits, check):
    several = {
        name: replace(clips, all_labels=torch.nn.functional.one_hot(clips.labels, 4).bool())
        for name, clips in ((name, subject.splits[name]) for name in ("train", "valid", "test"))
    }
    findings = audit(SeesEveryLabel(fits), replace(subject.splits, **several), [label_blindness, selection])
    assert [finding.check for finding in findings if finding.failed] == [check]
