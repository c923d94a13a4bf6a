"""Checks of the audit. The evidence of a check states only the action and its outcome."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.data.splitting.near_duplicates import near_duplicates
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.protocols.audit import (
    Case,
    Check,
    Embed,
    Judgment,
    Outcome,
    Verdict,
    noise_of,
    scrambled,
    with_garbage_labels,
    with_other_labels,
)
from aadml.protocols.carried_labels import can_be_tested, carried_columns, is_sorted_by_class
from aadml.protocols.row_changes import TOLERANCE, as_wide, largest_change
from aadml.protocols.subprocess_embedding import Vectors
from aadml.retrieval.evaluation import evaluate

if TYPE_CHECKING:
    from aadml.data.sources.waveforms import PackedWaveforms, Waveforms

SUBSET = 7
ROWS = 500
"""Largest number of clips that are embedded in small batches."""

GARBAGE = 3
"""Number of preparations with garbage labels."""

FALL = 0.005
"""Largest fall of MAP that is attributed to rounding."""

SHUFFLES = 99
"""Number of shuffles of the changes of embeddings among the clips, for the range of MAP that rounding can explain."""
SHOWN = 3


def label_blindness(case: Case) -> Outcome | Judgment:
    """Check that no embedding changes with permuted labels, or with nearly all labels wrong."""
    if not case.clips.class_names:
        return Verdict.NOT_CHECKABLE, "the clips have no labels"
    garbage = with_garbage_labels(case.clips, case.draw(2)), with_other_labels(case.clips, case.draw(9))
    action = "labels of the scored clips were replaced by garbage"
    judgments = [_unchanged(case, after, action) for after in case.embed(*garbage)]
    return lambda: min((judgment() for judgment in judgments), key=lambda outcome: outcome[0] is not Verdict.FAIL)


def id_blindness(case: Case) -> Judgment:
    """Check that no embedding depends on ids or class names. Both often contain the label."""
    (after,) = case.embed(scrambled(case.clips))
    return _unchanged(case, after, "ids and class names were replaced by numbers")


def partner_blindness(case: Case) -> Judgment:
    """Check that the embeddings of a modality do not change if noise replaces the other modalities."""
    requests = {}
    for modality in case.clips.modalities:
        features = {m: f if m == modality else noise_of(f, case.draw(3)) for m, f in case.clips.features.items()}
        requests[modality] = replace(case.clips, features=features)
    return _unchanged(case, case.embed_each(requests), "the partners were replaced by noise")


def history(case: Case) -> Judgment:
    """Check that no embedding depends on items that were embedded earlier.

    An encoder that fits a scaler in the first call fails this check.
    """
    (after,) = case.embed(case.clips, first=True)
    return _unchanged(case, after, "the scored clips were embedded first instead of after noise")


def order_invariance(case: Case) -> Judgment:
    """Check that the order of the scored clips changes no embedding."""
    order = _permutation(case, 4)
    (after,) = case.embed(case.clips.select(order))
    back = {m: v[torch.argsort(order)] if len(v) == len(order) else v for m, v in after.items()}
    return _unchanged(case, back, "the scored clips were shuffled")


def batch_invariance(case: Case) -> Judgment:
    """Check that clips have the same embeddings in small batches as in one batch.

    If the embeddings differ, two divisions of the clips into equally small batches are compared instead. The shape
    of a batch may change embeddings by rounding, as with bfloat16.
    """
    order = torch.arange(min(len(case.clips), ROWS))
    return partial(_batches_judged, case, order, _in_batches(case, order))


def _batches_judged(case: Case, order: Tensor, parts: Sequence[Vectors]) -> Outcome:
    small, action = _joined(case, order, parts), f"clips were embedded {SUBSET} at a time"
    count = len(order) // SUBSET
    outcome = _compared(case, case.reference, small, action)
    if outcome[0] is Verdict.FAIL and count > 1:
        batch, place = order[: count * SUBSET] // SUBSET, order[: count * SUBSET] % SUBSET
        others = torch.cat([(batch + place) % count * SUBSET + place, order[count * SUBSET :]])
        mixed = _joined(case, others, _in_batches(case, others))
        outcome = _compared(case, small, mixed, f"{action}, beside two selections of other clips")
    return _scored(case, small, outcome)


def _in_batches(case: Case, order: Tensor) -> list[Vectors]:
    return case.embed(*(case.clips.select(rows) for rows in order.split(SUBSET)))


def _joined(case: Case, order: Tensor, parts: Sequence[Vectors]) -> Vectors:
    """Join the embeddings of batches of the clips `order`, and return the rows in the order of the scored clips.

    Clips that `order` lacks have the rows of the reference. For a wrong number of rows in the batches, the result
    has too few rows, and `_compared` fails.
    """
    joined = {m: torch.cat([as_wide(part[m], rows) for part in parts]) for m, rows in case.reference.items()}
    if any(len(rows) != len(order) for rows in joined.values()):  # rows are missing, and `_compared` fails
        return {m: rows[: len(case.clips) - 1] for m, rows in joined.items()}
    return _completed(case, {m: rows[torch.argsort(order)] for m, rows in joined.items()})


def other_items(case: Case) -> Judgment:
    """Check that a change of the features of some scored clips does not change the embeddings of the other clips."""
    changed = torch.arange(len(case.clips)) % 2 == 1
    clips = replace(case.clips, features={m: _stretched(f, changed) for m, f in case.clips.features.items()})
    (after,) = case.embed(clips, splits=case.splits.having(case.split, clips))
    action = "every second scored clip was scaled tenfold (sound and text: replaced), and the other clips were compared"

    def judgment() -> Outcome:
        others = {m: _with_rows(rows, changed, as_wide(after[m], rows)) for m, rows in case.reference.items()}
        return _unchanged(case, others, action)()

    return judgment


def _with_rows(reference: Tensor, rows: Tensor, vectors: Tensor) -> Tensor:
    """Replace the rows of `vectors` in the mask `rows` by the same rows of `reference`.

    Vectors with another number of rows than `reference` are returned unchanged.
    """
    return torch.where(rows[:, None], reference, vectors) if len(vectors) == len(reference) else vectors


def one_modality_alone(case: Case) -> Judgment:
    """Check that each modality can be embedded without the other modalities, with the same embeddings."""
    together, alone = {}, {}
    for number, modality in enumerate(case.clips.modalities):
        together[modality] = case.clips.select(torch.arange(max(len(case.clips) - number, 1)))
        alone[modality] = together[modality].keeping([modality])
    return partial(_alone_judged, case, together, case.embed_each(alone))


def _alone_judged(case: Case, together: Mapping[Modality, Clips], alone: Vectors) -> Outcome:
    after, action = _completed(case, alone), "each modality was embedded without the other"
    outcome = _compared(case, case.reference, after, action)
    if outcome[0] is Verdict.FAIL:  # a difference of shape changes embeddings by rounding
        control = _completed(case, case.embed_each(together))
        outcome = _compared(case, control, after, f"{action}, beside equally many clips with the other")
    return _scored(case, after, outcome)


def _completed(case: Case, results: Vectors) -> Vectors:
    reference = case.reference
    return {m: torch.cat([as_wide(rows, reference[m]), reference[m][len(rows) :]]) for m, rows in results.items()}


def nothing_dropped(case: Case) -> Outcome:
    """Report equal counts of embeddings and clips. With different counts, `audit` fails every check beforehand.

    The evidence contains the notes on clips and captions of the split that were left out when the data were read.
    """
    notes = [note for note in case.splits.notes if note.startswith(f"{case.split}: ")]
    return Verdict.PASS, "; ".join([f"{len(case.clips)} embeddings of {len(case.clips)} clips", *notes])


def exact_rows(case: Case) -> Outcome:
    """Check that slight noise on the features of the scored clips does not lower MAP.

    An encoder that looks up memorized features by their exact bits fails this check. The noise is a thousandth of the
    standard deviation of a feature column. The check passes if MAP falls by at most 0.05 or by at most a tenth.
    """
    if not all(isinstance(features, Tensor) for features in case.clips.features.values()):
        return Verdict.NOT_CHECKABLE, "sound and text cannot be changed by a small amount"
    moved: dict[Modality, Features] = {}
    for number, modality in enumerate(case.clips.modalities):
        values = case.clips.matrix(modality)
        noise = np.random.default_rng([*case.draw(5), number]).standard_normal(values.shape, dtype=np.float32)
        moved[modality] = values + 1e-3 * values.std(0, correction=0) * torch.from_numpy(noise)
    versions = (case.clips, replace(case.clips, features=moved))
    before, after = case.numbers(lambda embed: [evaluate(embed(clips)).map_mean for clips in versions])
    verdict = Verdict.FAIL if after < before - max(0.05, 0.1 * before) else Verdict.PASS
    return verdict, f"features were moved by a thousandth of their spread: MAP {before:.4f}, then {after:.4f}"


def carried_labels(case: Case) -> Outcome:
    """Check that no feature column encodes labels: by low-order digits, by one value per class, or as a counter.

    An order of clips by class is reported and is not a failure. `order_invariance` finds encoders that use the order.
    """
    known = case.clips.labels != UNLABELLED
    matrices = {m: f for m, f in case.clips.features.items() if isinstance(f, Tensor)}
    columns, unseen = list[str](), list[str]()
    for modality, values in matrices.items():
        rows = known & case.clips.present.get(modality, known)
        labels = case.clips.labels[rows]
        patterns = carried_columns(values[rows], labels) if len(labels.unique()) > 1 else {}
        columns += [f"{modality} {column} ({pattern})" for column, pattern in patterns.items()]
        unseen += [] if can_be_tested(values[rows], labels) else [f"{modality} has {len(labels)} labeled clips"]
    if columns:
        more = f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
        shown = f"{', '.join(columns[:SHOWN])}{more}"
        return Verdict.FAIL, f"columns encode labels: {shown}"
    if unseen or not matrices:
        shown = ", ".join(unseen) or "no vectors"
        return Verdict.NOT_CHECKABLE, f"too few distinct clips of different classes for a test of columns: {shown}"
    order = "; the clips are in order of class" if is_sorted_by_class(case.clips.labels) else ""
    return Verdict.PASS, f"no column of {', '.join(matrices)} encodes labels{order}"


def selection(case: Case) -> Outcome:
    """Check that training, fitting and selection do not use the labels of the scored split."""
    others = case.splits["valid" if case.split != "valid" else "train"]
    if not case.pipeline.preparation:
        return Verdict.NOT_CHECKABLE, "the training of the encoder is not visible; to train a run again, pass --retrain"
    if not len(others):
        return Verdict.NOT_CHECKABLE, "the data have no other split to compare"
    (before,) = case.embed(others)
    change = 0.0
    for number in range(GARBAGE):
        garbage = case.splits.having(case.split, with_garbage_labels(case.clips, case.draw(6 + number)))
        (after,) = case.embed(others, splits=garbage)
        change = max(change, *(largest_change(before[m], after[m]) for m in before))
    action = f"{case.pipeline.preparation} {GARBAGE} times with garbage labels on the scored clips"
    return _verdict(change), f"{action}; embeddings of other clips changed by {change:.2g} (relative)"


def metric(case: Case) -> Outcome:
    """Check that the reported number is the MAP of the embeddings.

    This MAP is computed over the full gallery and all relevant items, with the exact expectation over ties.
    """

    def compute(embed: Embed) -> list[float]:
        number = case.pipeline.reported_map(case.splits, case.split)
        return [math.nan if number is None else number, evaluate(embed(case.clips)).map_mean]

    reported, exact = case.numbers(compute)
    if math.isnan(reported):
        return Verdict.NOT_CHECKABLE, "no number is reported; score embeddings with `aadml evaluate --embeddings`"
    return _verdict(abs(reported - exact)), f"reported MAP {reported:.5f}, MAP of the embeddings {exact:.5f}"


def duplicates(case: Case) -> Outcome:
    """Check that no id, sound file or feature vector of the scored split is also in another split.

    Sound files are compared by their SHA-256. Nearly equal feature vectors count as equal. Texts are not compared. A
    model on other data is also compared with its training data, without ids, because row numbers of different data
    agree. Without this comparison, the check does not pass.
    """
    others = {name: case.splits[name] for name in ("train", "valid", "test") if name != case.split}
    ids = {name: {*case.clips.ids} & {*clips.ids} for name, clips in others.items() if len(clips)}
    of_data, examples = _copies(case.clips, others)
    counts = {f"ids also in {name}": len(common) for name, common in ids.items()} | of_data
    missing = "" if counts else "the data have no other split to compare"
    if case.training is not None:
        names = {"train of the run": case.training.train, "valid of the run": case.training.valid}
        of_run, more = _copies(case.clips, names)
        counts, examples = counts | of_run, examples + more
        if not of_run:
            missing = "the model's training data cannot be compared: unreadable, prepared otherwise, or without vectors"
    evidence = "; ".join(f"{count} {kind}" for kind, count in counts.items())
    if any(counts.values()):
        return Verdict.FAIL, f"{evidence} ({', '.join(examples[:SHOWN])} ...)" if examples else evidence
    return (Verdict.NOT_CHECKABLE, missing) if missing else (Verdict.PASS, evidence)


def _copies(scored: Clips, others: Mapping[str, Clips]) -> tuple[dict[str, int], list[str]]:
    """Return the numbers of equal vectors and sound files by kind and split, and examples."""
    counts: dict[str, int] = {}
    examples: list[str] = []
    for modality, features in scored.features.items():
        if modality == "text" or not (isinstance(features, Tensor) or _is_sound(features)):
            continue  # different clips may have equal texts
        kind = "vectors also (or nearly)" if isinstance(features, Tensor) else "files also"
        for name, clips in others.items():
            if len(clips):
                copies = (_similar_rows if isinstance(features, Tensor) else _equal_sounds)(scored, clips, modality)
                counts[f"{modality} {kind} in {name}"] = len(copies)
                examples += copies[:SHOWN]
    return counts, examples


def _similar_rows(clips: Clips, others: Clips, modality: Modality) -> list[str]:
    rows, other_rows = clips.rows(modality), others.rows(modality)
    pairs = near_duplicates(clips.matrix(modality)[rows], others.matrix(modality)[other_rows])
    return [f"{clips.ids[rows[i]]} = {others.ids[other_rows[j]]}" for i, j, _ in pairs]


def _equal_sounds(clips: Clips, others: Clips, modality: Modality) -> list[str]:
    scored, known = _sound_files(clips[modality]), _sound_files(others[modality])
    return [f"{path} = {known[digest]}" for digest, path in scored.items() if digest in known]


def _is_sound(features: Features) -> TypeGuard["Waveforms | PackedWaveforms"]:
    from aadml.data.sources.waveforms import PackedWaveforms, Waveforms  # imports media code

    return isinstance(features, Waveforms | PackedWaveforms)


def _sound_files(source: Features) -> dict[bytes, str]:
    """Return the paths of the readable sound files that the items of `source` use, by SHA-256.

    All segments of a file have the same path.
    """
    assert _is_sound(source)
    files = source.items.unique().tolist()
    return {digest: source.paths[file] for file, digest in zip(files, source.recordings(files), strict=True) if digest}


CHECKS: Sequence[Check] = (
    label_blindness,
    id_blindness,
    partner_blindness,
    history,
    order_invariance,
    batch_invariance,
    other_items,
    one_modality_alone,
    nothing_dropped,
    exact_rows,
    carried_labels,
    selection,
    metric,
    duplicates,
)


def _unchanged(case: Case, after: Vectors, action: str) -> Judgment:
    return lambda: _scored(case, after, _compared(case, case.reference, after, action))


def _compared(case: Case, before: Vectors, after: Vectors, action: str) -> Outcome:
    wrong = [len(vectors) for vectors in after.values() if len(vectors) != len(case.clips)]
    if wrong or not after:
        return Verdict.FAIL, f"{wrong[0] if wrong else 0} embeddings for {len(case.clips)} clips"
    change = {m: largest_change(before[m], vectors) for m, vectors in after.items()}
    changes = ", ".join(f"{m} {value:.2g}" for m, value in change.items())
    return _verdict(max(change.values())), f"{action}; largest change of a row (relative): {changes}"


def _scored(case: Case, after: Vectors, outcome: Outcome) -> Outcome:
    """Return a failure if MAP of `after`, by any similarity, is significantly below MAP of the reference.

    Otherwise, the outcome is returned. A fall of MAP is significant if the fall exceeds `FALL` and the range of MAP
    over SHUFFLES shuffles of the changes among the clips. If the changes are rounding, MAP of shuffled changes varies
    as much. By Hamming distance, MAP can depend on rounding, because values near zero change sign.
    """
    verdict, evidence = outcome
    if verdict is Verdict.FAIL:
        return outcome
    changes = {m: as_wide(after[m], rows) - rows for m, rows in case.reference.items()}
    for similarity, before in case.scores.items() if any(change.any() for change in changes.values()) else ():
        score = case.map_of(after, similarity)
        if math.isnan(score) or before - score <= FALL:  # NaN: without a score
            continue
        evidence = f"{evidence}; MAP by {similarity} {before:.4f}, then {score:.4f}"
        orders = [_permutation(case, 100 + number) for number in range(SHUFFLES)]
        moved = ({m: rows + changes[m][order] for m, rows in case.reference.items()} for order in orders)
        shuffled = [case.map_of(vectors, similarity) for vectors in moved]
        if before - score > max(shuffled) - min(shuffled):
            return Verdict.FAIL, f"{evidence}, a fall above the range over {SHUFFLES} shuffles of the changes"
        evidence = f"{evidence}, within the range over shuffles of the changes"
    return verdict, evidence


def _permutation(case: Case, number: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(case.draw(number)).permutation(len(case.clips)))


def _verdict(change: float) -> Verdict:
    return Verdict.PASS if change <= TOLERANCE else Verdict.FAIL


def _stretched(features: Features, changed: Tensor) -> Features:
    """Scale and shift the marked vectors, or replace a marked sound or text by the previous item."""
    if isinstance(features, Tensor):
        return torch.where(changed[:, None], 10 * features + 3, features)
    rows = torch.arange(len(features))
    return features.select(torch.where(changed, rows - 1, rows))
