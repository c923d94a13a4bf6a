"""The audit: does what is scored depend on anything that it must not know? Every check gives its evidence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol as Interface

import torch
from torch import Tensor

from aadml.comparison.types import Clips, Embeddings, Features, Modality, Splits
from aadml.retrieval import evaluate
from feature_extraction.ground.errors import InputError

TOLERANCE = 1e-5
SUBSET = 7
GARBAGE_SEEDS = (2, 3, 4)

Embed = Callable[[Clips], Embeddings]


class Pipeline(Interface):
    """What is audited: from a data set to embeddings, and to a number."""

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Prepare all that depends on the data set, and return what embeds clips (of one modality, or several)."""

    def reported_map(self, splits: Splits, split: str) -> float | None:
        """Return the MAP that is reported for a split; None where no number is made here."""


@dataclass(frozen=True)
class Finding:
    """What one check saw.

    Attributes:
        check: its name.
        passed: None where the check does not apply.
        evidence: what was done and what came out, one sentence.
    """

    check: str
    passed: bool | None
    evidence: str


@dataclass(frozen=True)
class Case:
    """What every check works on.

    Attributes:
        pipeline: under audit.
        splits: the data.
        split: that is scored.
        embed: the pipeline's embedder on the data as they are.
        reference: its embeddings of the split as it is.
    """

    pipeline: Pipeline
    splits: Splits
    split: str
    embed: Embed
    reference: Embeddings

    @property
    def clips(self) -> Clips:
        """The clips that are scored."""
        return self.splits[self.split]


def audit(pipeline: Pipeline, splits: Splits, *, split: str = "test") -> list[Finding]:
    """Run all checks.

    Args:
        pipeline: under audit.
        splits: the data it is scored on.
        split: "test", or another split to score.
    """
    embed = pipeline.embedder(splits, split)
    case = Case(pipeline, splits, split, embed, embed(splits[split]))
    return [_guarded(name, check, case) for name, check in CHECKS.items()]


def label_blindness(case: Case) -> Finding:
    """Labels replaced by garbage must change no embedding."""
    garbage = replace(case.clips, labels=_permuted(case.clips.labels))
    return _unchanged(case, case.embed(garbage), "labels of the scored clips were replaced by garbage")


def partner_blindness(case: Case) -> Finding:
    """The other modality replaced by noise must change no embedding."""
    worst: dict[Modality, Tensor] = {}
    for modality in case.clips.modalities:
        others: dict[Modality, Features] = {
            m: f if m == modality else _noise(f) for m, f in case.clips.features.items()
        }
        worst[modality] = case.embed(replace(case.clips, features=others)).vectors[modality]
    return _unchanged(case, replace(case.reference, vectors=worst), "the partners were replaced by noise")


def order_invariance(case: Case) -> Finding:
    """The order of the scored clips must change no embedding."""
    order = torch.randperm(len(case.clips), generator=torch.Generator().manual_seed(1))
    shuffled = case.embed(case.clips.select(order))
    back = {m: v[torch.argsort(order)] for m, v in shuffled.vectors.items()} if _whole(case, shuffled) else {}
    return _unchanged(case, replace(case.reference, vectors=back), "the scored clips were shuffled")


def batch_invariance(case: Case) -> Finding:
    """Clips embedded a few at a time must be embedded as among all others."""
    parts = [case.embed(case.clips.select(rows)) for rows in torch.arange(len(case.clips)).split(SUBSET)]
    joined = {
        m: torch.cat([_as_wide(part.vectors[m], reference) for part in parts])
        for m, reference in case.reference.vectors.items()
    }
    action = f"clips were embedded {SUBSET} at a time"
    return _unchanged(case, replace(case.reference, vectors=joined), action)


def other_items(case: Case) -> Finding:
    """Scaling the features of some scored clips must leave the others alone: nothing is fitted on the scored split."""
    changed = torch.arange(len(case.clips)) % 2 == 1
    features = {m: _stretched(f, changed) for m, f in case.clips.features.items()}
    clips = replace(case.clips, features=features)
    splits = _with_split(case.splits, case.split, clips)
    embeddings = case.pipeline.embedder(splits, case.split)(clips)
    if not _whole(case, embeddings):
        return _missing(case, embeddings)
    kept = {
        m: torch.where(changed[:, None], reference, _as_wide(embeddings.vectors[m], reference))
        for m, reference in case.reference.vectors.items()
    }
    action = "every second scored clip was stretched tenfold (sound and words: exchanged), the others were looked at"
    return _unchanged(case, replace(case.reference, vectors=kept), action)


def one_modality_alone(case: Case) -> Finding:
    """Queries and gallery may be of unequal counts: each modality must embed without the other."""
    alone: dict[Modality, Tensor] = {}
    for number, modality in enumerate(case.clips.modalities):
        count = max(len(case.clips) - number, 1)
        clips = case.clips.select(torch.arange(count))
        try:
            vectors = case.embed(replace(clips, features={modality: clips[modality]})).vectors[modality]
        except (InputError, KeyError, RuntimeError, ValueError, IndexError) as error:
            return Finding("", False, f"{count} {modality} items without partners could not be embedded: {error}")
        alone[modality] = torch.cat([vectors, case.reference.vectors[modality][len(vectors) :]])
    return _unchanged(case, replace(case.reference, vectors=alone), "each modality was embedded without the other")


def nothing_dropped(case: Case) -> Finding:
    """As many embeddings as clips, in their order."""
    return (
        Finding("", True, f"{len(case.clips)} embeddings of {len(case.clips)} clips")
        if _whole(case, case.reference)
        else _missing(case, case.reference)
    )


def selection(case: Case) -> Finding:
    """Garbage in the place of the scored split must change nothing of what was trained and chosen."""
    others = case.splits["valid" if case.split != "valid" else "train"]
    if not len(others):
        return Finding("", None, "no other split to look at")
    before, change = case.embed(others), 0.0
    for seed in GARBAGE_SEEDS:
        garbage = replace(case.clips, labels=_permuted(case.clips.labels, seed))
        after = case.pipeline.embedder(_with_split(case.splits, case.split, garbage), case.split)(others)
        change = max(change, *(_change(before.vectors[m], after.vectors[m]) for m in before.vectors))
    action = f"all was prepared anew {len(GARBAGE_SEEDS)} times with garbage labels on the scored clips; the encoder"
    return Finding("", change <= TOLERANCE, f"{action} changed by {change:.2g} (relative)")


def metric(case: Case) -> Finding:
    """The number reported must be the MAP of the embeddings: full gallery, all relevant items, exact ties."""
    reported = case.pipeline.reported_map(case.splits, case.split)
    if reported is None:
        return Finding("", None, "no number is made here; score the embeddings with `aadml evaluate --embeddings`")
    exact = evaluate(case.reference).map_mean
    evidence = f"reported MAP {reported:.5f}, MAP of the embeddings {exact:.5f}"
    return Finding("", abs(reported - exact) <= TOLERANCE, evidence)


def duplicates(case: Case) -> Finding:
    """No id and no feature vector of the scored split may stand in another split."""
    others = [name for name in ("train", "valid", "test") if name != case.split]
    ids = set(case.clips.ids)
    shared = {name: len(ids & set(case.splits[name].ids)) for name in others}
    same: dict[str, int] = {}
    for modality in case.clips.modalities:
        if not isinstance(case.clips[modality], Tensor):
            continue  # sound and words: their ids tell; captions may well repeat
        own = _rows(case.clips.matrix(modality))
        for name in others:
            known = set(_rows(case.splits[name].matrix(modality)))
            same[f"{modality} vectors also in {name}"] = sum(row in known for row in own)
    counts = {f"ids also in {name}": count for name, count in shared.items()} | same
    return Finding("", not any(counts.values()), "; ".join(f"{count} {what}" for what, count in counts.items()))


Check = Callable[[Case], Finding]

CHECKS: Mapping[str, Check] = {
    "label blindness": label_blindness,
    "partner blindness": partner_blindness,
    "order invariance": order_invariance,
    "batch invariance": batch_invariance,
    "other items": other_items,
    "one modality alone": one_modality_alone,
    "nothing dropped": nothing_dropped,
    "selection": selection,
    "metric": metric,
    "duplicates": duplicates,
}


def _guarded(name: str, check: Check, case: Case) -> Finding:
    try:
        found = check(case)
    except InputError as error:
        found = Finding(name, False, f"could not be embedded: {error}")
    return replace(found, check=name)


def _unchanged(case: Case, embeddings: Embeddings, action: str) -> Finding:
    if not embeddings.vectors or not _whole(case, embeddings):
        return _missing(case, embeddings)
    change = {m: _change(case.reference.vectors[m], v) for m, v in embeddings.vectors.items()}
    told = ", ".join(f"{m} {value:.2g}" for m, value in change.items())
    return Finding("", max(change.values()) <= TOLERANCE, f"{action}; largest change (relative): {told}")


def _missing(case: Case, embeddings: Embeddings) -> Finding:
    return Finding("", False, f"{len(embeddings)} embeddings came of {len(case.clips)} clips")


def _whole(case: Case, embeddings: Embeddings) -> bool:
    return len(embeddings) == len(case.clips)


def _change(before: Tensor, after: Tensor) -> float:
    after = _as_wide(after, before)
    if before.shape != after.shape:
        return float("inf")
    scale = float(before.abs().max()) or 1.0
    return float((before - after).abs().max()) / scale if before.numel() else 0.0


def _permuted(labels: Tensor, seed: int = 2) -> Tensor:
    return labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]


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


def _noise(features: Features) -> Features:
    """Make noise of the same size; of sound and words, those of other items."""
    generator = torch.Generator().manual_seed(3)
    if not isinstance(features, Tensor):
        return features.select(torch.randperm(len(features), generator=generator))
    return torch.randn(features.shape, generator=generator) * features.std() + features.mean()


def _rows(features: Tensor) -> list[bytes]:
    return [row.tobytes() for row in features.contiguous().numpy()]


def _with_split(splits: Splits, split: str, clips: Clips) -> Splits:
    return replace(splits, **{split: clips})  # type: ignore[arg-type]
