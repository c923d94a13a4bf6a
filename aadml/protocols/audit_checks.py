"""The checks of the audit. Each says what was done and what came out, and nothing that was not done."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from aadml.comparison.features import Features
from aadml.data.sources.waveforms import PackedWaveforms, Waveforms
from aadml.data.splitting.near_duplicates import near_duplicates
from aadml.protocols.audit import Case, Check, Finding, Verdict, noise_of, scrambled, with_garbage_labels
from aadml.protocols.subprocess_embedding import Vectors, in_fresh_process
from aadml.retrieval import evaluate

TOLERANCE = 1e-5
"""Largest change of an embedding, relative to its own length, that rounding may cause."""

SUBSET = 7
GARBAGE_SEEDS = (2, 3, 4)
SHOWN = 3


def label_blindness(case: Case) -> Finding:
    """Labels replaced by garbage must change no embedding."""
    if not case.clips.class_names:
        return Finding("", Verdict.NOT_CHECKABLE, "the clips have no labels")
    (after,) = case.embed(with_garbage_labels(case.clips, 2))
    return _unchanged(case, after, "labels of the scored clips were replaced by garbage")


def id_blindness(case: Case) -> Finding:
    """Ids and class names, which often spell the label, replaced by numbers must change no embedding."""
    (after,) = case.embed(scrambled(case.clips))
    return _unchanged(case, after, "ids and class names were replaced by numbers")


def partner_blindness(case: Case) -> Finding:
    """The other modality replaced by noise must change no embedding."""
    requests = []
    for modality in case.clips.modalities:
        features = {m: f if m == modality else noise_of(f) for m, f in case.clips.features.items()}
        requests.append(replace(case.clips, features=features))
    found = case.embed(*requests)
    after = {m: vectors[m] for m, vectors in zip(case.clips.modalities, found, strict=True)}
    return _unchanged(case, after, "the partners were replaced by noise")


def history(case: Case) -> Finding:
    """What was embedded before must not matter: nothing is fitted on the first call."""
    (after,) = case.embed(case.clips)
    return _unchanged(case, after, "the scored clips were embedded after noise instead of first")


def order_invariance(case: Case) -> Finding:
    """The order of the scored clips must change no embedding."""
    order = torch.randperm(len(case.clips), generator=torch.Generator().manual_seed(1))
    (after,) = case.embed(case.clips.select(order))
    back = {m: v[torch.argsort(order)] if len(v) == len(order) else v for m, v in after.items()}
    return _unchanged(case, back, "the scored clips were shuffled")


def batch_invariance(case: Case) -> Finding:
    """Clips embedded a few at a time must be embedded as among all others."""
    parts = case.embed(*(case.clips.select(rows) for rows in torch.arange(len(case.clips)).split(SUBSET)))
    joined = {m: torch.cat([_as_wide(part[m], own) for part in parts]) for m, own in case.reference.items()}
    return _unchanged(case, joined, f"clips were embedded {SUBSET} at a time")


def other_items(case: Case) -> Finding:
    """Scaling the features of some scored clips must leave the others alone: nothing is fitted on the scored split."""
    changed = torch.arange(len(case.clips)) % 2 == 1
    clips = replace(case.clips, features={m: _stretched(f, changed) for m, f in case.clips.features.items()})
    (after,) = case.embed(clips, splits=case.splits.having(case.split, clips))
    kept = {
        m: torch.where(changed[:, None], own, _as_wide(after[m], own)) if len(after[m]) == len(own) else after[m]
        for m, own in case.reference.items()
    }
    action = "every second scored clip was stretched tenfold (sound and words: exchanged), the others were looked at"
    return _unchanged(case, kept, action)


def one_modality_alone(case: Case) -> Finding:
    """Queries and gallery may be of unequal counts: each modality must embed without the other."""
    requests = []
    for number, modality in enumerate(case.clips.modalities):
        clips = case.clips.select(torch.arange(max(len(case.clips) - number, 1)))
        requests.append(replace(clips, features={modality: clips[modality]}))
    found = case.embed(*requests)
    alone = {}
    for modality, vectors in zip(case.clips.modalities, found, strict=True):
        own = case.reference[modality]
        alone[modality] = torch.cat([_as_wide(vectors[modality], own), own[len(vectors[modality]) :]])
    return _unchanged(case, alone, "each modality was embedded without the other")


def nothing_dropped(case: Case) -> Finding:
    """As many embeddings as clips: where there are fewer, no check is made, and all fail with the counts."""
    return Finding("", Verdict.PASS, f"{len(case.clips)} embeddings of {len(case.clips)} clips")


def exact_rows(case: Case) -> Finding:
    """The score must not rest on the exact bits of the scored rows: a table of memorized rows knows no others."""
    if not all(isinstance(features, Tensor) for features in case.clips.features.values()):
        return Finding("", Verdict.NOT_CHECKABLE, "sound and words cannot be changed by a little")
    generator = torch.Generator().manual_seed(7)
    moved: dict[Any, Features] = {}
    for modality in case.clips.modalities:
        values = case.clips.matrix(modality)
        moved[modality] = values + 1e-3 * values.std(0) * torch.randn(values.shape, generator=generator)
    changed = replace(case.clips, features=moved)

    def work() -> list[Vectors]:
        embed = case.pipeline.embedder(case.splits, case.split)
        scores = [evaluate(embed(clips)).map_mean for clips in (case.clips, changed)]
        return [{"map": torch.tensor(scores, dtype=torch.float64)}]

    before, now = in_fresh_process(work, seconds=case.seconds)[0]["map"].tolist()
    verdict = Verdict.FAIL if now < before - max(0.05, 0.1 * before) else Verdict.PASS
    return Finding(
        "", verdict, f"features were moved by a thousandth of their spread: MAP {before:.4f}, then {now:.4f}"
    )


def selection(case: Case) -> Finding:
    """Garbage in the place of the scored split must change nothing of what was trained, fitted and chosen."""
    others = case.splits["valid" if case.split != "valid" else "train"]
    if not case.pipeline.preparation:
        return Finding(
            "",
            Verdict.NOT_CHECKABLE,
            "what the encoder was fitted on cannot be seen from outside; for a run, --retrain trains again",
        )
    if not len(others):
        return Finding("", Verdict.NOT_CHECKABLE, "the data have no other split to look at")
    (before,) = case.embed(others)
    change = 0.0
    for seed in GARBAGE_SEEDS:
        garbage = case.splits.having(case.split, with_garbage_labels(case.clips, seed))
        (after,) = case.embed(others, splits=garbage)
        change = max(change, *(_change(before[m], after[m]) for m in before))
    action = f"{case.pipeline.preparation} {len(GARBAGE_SEEDS)} times with garbage labels on the scored clips"
    return Finding("", _verdict(change), f"{action}; embeddings of other clips changed by {change:.2g} (relative)")


def metric(case: Case) -> Finding:
    """The number reported must be the MAP of the embeddings: full gallery, all relevant items, exact ties."""

    def work() -> list[Vectors]:
        number = case.pipeline.reported_map(case.splits, case.split)
        embed = case.pipeline.embedder(case.splits, case.split)
        exact = evaluate(embed(case.clips)).map_mean
        return [{"map": torch.tensor([float("nan") if number is None else number, exact], dtype=torch.float64)}]

    reported, exact = in_fresh_process(work, seconds=case.seconds)[0]["map"].tolist()
    if reported != reported:
        reason = "no number is reported here; score the embeddings with `aadml evaluate --embeddings`"
        return Finding("", Verdict.NOT_CHECKABLE, reason)
    evidence = f"reported MAP {reported:.5f}, MAP of the embeddings {exact:.5f}"
    return Finding("", _verdict(abs(reported - exact)), evidence)


def duplicates(case: Case) -> Finding:
    """No id, no sound file and no feature vector of the scored split may stand in another split.

    Vectors not even nearly; files of sound byte for byte.
    """
    others = [name for name in ("train", "valid", "test") if name != case.split and len(case.splits[name])]
    ids = set(case.clips.ids)
    counts = {f"ids also in {name}": len(ids & set(case.splits[name].ids)) for name in others}
    examples: list[str] = []
    for modality in case.clips.modalities:
        source = case.clips[modality]
        if isinstance(source, Waveforms | PackedWaveforms):
            own = _contents(source)
            for name in others:
                known = _contents(case.splits[name][modality])
                shared = [content for content in own if content in known]
                counts[f"{modality} files also in {name}"] = len(shared)
                examples += [f"{own[content]} = {known[content]}" for content in shared[:SHOWN]]
        if not isinstance(source, Tensor):
            continue  # of words: captions may well repeat
        for name in others:
            one, other = case.clips, case.splits[name]
            rows, others_rows = one.rows(modality), other.rows(modality)
            pairs = near_duplicates(one.matrix(modality)[rows], other.matrix(modality)[others_rows])
            counts[f"{modality} vectors also (or nearly) in {name}"] = len(pairs)
            examples += [f"{one.ids[rows[i]]} = {other.ids[others_rows[j]]}" for i, j, _ in pairs[:SHOWN]]
    evidence = "; ".join(f"{count} {what}" for what, count in counts.items())
    verdict = Verdict.FAIL if any(counts.values()) else Verdict.PASS
    return Finding("", verdict, evidence + (f" ({', '.join(examples[:SHOWN])} ...)" if examples else ""))


def _contents(source: Features) -> dict[bytes, str]:
    """Give the SHA-256 of each sound in use that can be read, and the name of a file that has it."""
    assert isinstance(source, Waveforms | PackedWaveforms)
    files = source.items.unique().tolist()
    return {content: source.paths[file] for file, content in zip(files, source.sums(files), strict=True) if content}


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
    selection,
    metric,
    duplicates,
)


def _unchanged(case: Case, after: Vectors, action: str) -> Finding:
    missing = _missing(case, after)
    if missing:
        return missing
    change = {m: _change(case.reference[m], vectors) for m, vectors in after.items()}
    changes = ", ".join(f"{m} {value:.2g}" for m, value in change.items())
    return Finding("", _verdict(max(change.values())), f"{action}; largest change of a row (relative): {changes}")


def _missing(case: Case, vectors: Vectors) -> Finding | None:
    wrong = {m: len(v) for m, v in vectors.items() if len(v) != len(case.clips)}
    if not wrong and vectors:
        return None
    return Finding("", Verdict.FAIL, f"{next(iter(wrong.values()), 0)} embeddings for {len(case.clips)} clips")


def _verdict(change: float) -> Verdict:
    return Verdict.PASS if change <= TOLERANCE else Verdict.FAIL


def _change(before: Tensor, after: Tensor) -> float:
    """Give the largest change of a row, relative to its length; a row of zeros is measured by the mean length."""
    after = _as_wide(after, before)
    if before.shape != after.shape:
        return float("inf")
    if not before.numel():
        return 0.0
    if not bool(torch.isfinite(after).all()):
        return float("inf")
    length = before.double().norm(dim=1)
    floor = 1e-3 * float(length.mean()) or 1.0
    return float(((before.double() - after.double()).norm(dim=1) / length.clamp_min(floor)).max())


def _as_wide(vectors: Tensor, reference: Tensor) -> Tensor:
    """Fill rows up with zeros: packed sequences are as wide as the longest among them."""
    missing = reference.shape[1] - vectors.shape[1] if vectors.ndim == reference.ndim == 2 else 0
    return torch.nn.functional.pad(vectors, (0, max(missing, 0)))


def _stretched(features: Features, changed: Tensor) -> Features:
    """Change the marked items: vectors are stretched, sound and words become those of the item before."""
    if isinstance(features, Tensor):
        return torch.where(changed[:, None], 10 * features + 3, features)
    rows = torch.arange(len(features))
    return features.select(torch.where(changed, rows - 1, rows))
