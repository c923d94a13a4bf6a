"""The audit: does what is scored depend on anything that it must not know? Every check gives its evidence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol as Interface

import torch
from torch import Tensor

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.subprocess_embedding import Vectors, in_fresh_process

Embed = Callable[[Clips], Embeddings]


class Verdict(StrEnum):
    """What a check says; it says no more than was done."""

    PASS = "pass"
    FAIL = "fail"
    NOT_CHECKABLE = "not checkable"


class Pipeline(Interface):
    """What is audited: from a data set to embeddings, and to a number."""

    @property
    def preparation(self) -> str:
        """Say what `embedder` does with a data set ("it is trained again"); empty where it does nothing."""

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Prepare all that depends on the data set, and return what embeds clips (of one modality, or several)."""

    def reported_map(self, splits: Splits, split: str) -> float | None:
        """Return the MAP that is reported for a split; None where no number is made here."""


@dataclass(frozen=True)
class Finding:
    """What one check saw.

    Attributes:
        check: its name.
        verdict: pass, fail or not checkable.
        evidence: what was done and what came out, or why nothing could be done; one sentence.
    """

    check: str
    verdict: Verdict
    evidence: str

    @property
    def failed(self) -> bool:
        """Tell whether the check failed."""
        return self.verdict is Verdict.FAIL


@dataclass(frozen=True)
class Case:
    """What every check works on.

    Attributes:
        pipeline: under audit. It is never called in this process.
        splits: the data.
        split: that is scored.
        reference: embeddings of the split as it is, the first thing that a fresh process embedded.
        seconds: that a fresh process may take.
    """

    pipeline: Pipeline
    splits: Splits
    split: str
    reference: Vectors
    seconds: float

    @property
    def clips(self) -> Clips:
        """The clips that are scored."""
        return self.splits[self.split]

    def embed(self, *requests: Clips, splits: Splits | None = None) -> list[Vectors]:
        """Embed clips in a fresh process that has embedded noise before, so that nothing is fitted on them first.

        Args:
            requests: one after the other.
            splits: the data set that the pipeline prepares for; by default as it is.
        """

        def work() -> list[Vectors]:
            embed = self.pipeline.embedder(splits or self.splits, self.split)
            _ignoring_refusal(embed, noise(self.clips))
            return [_vectors(embed(clips)) for clips in requests]

        return list(in_fresh_process(work, seconds=self.seconds))


Check = Callable[[Case], Finding]


def audit(
    pipeline: Pipeline, splits: Splits, checks: Sequence[Check], *, split: str = "test", seconds: float = 600.0
) -> list[Finding]:
    """Run checks, each in fresh processes.

    Args:
        pipeline: under audit.
        splits: the data it is scored on.
        checks: a function each; its name is the name of the check.
        split: "test", or another split to score.
        seconds: that one process may take.

    Raises:
        InputError: the clips cannot be embedded at all.
    """
    splits = splits.in_memory()  # checks change all clips, and compare them

    def work() -> list[Vectors]:
        return [_vectors(pipeline.embedder(splits, split)(splits[split]))]

    (reference,) = in_fresh_process(work, seconds=seconds)
    case = Case(pipeline, splits, split, reference, seconds)
    return [_guarded(check, case) for check in checks]


def summary(findings: Sequence[Finding]) -> str:
    """Sum an audit up in one sentence."""
    named = {verdict: [one.check for one in findings if one.verdict is verdict] for verdict in Verdict}
    parts = [f"{len(named[Verdict.PASS])} checks passed"]
    for verdict, word in ((Verdict.FAIL, "failed"), (Verdict.NOT_CHECKABLE, "not checkable")):
        parts += [f"{len(named[verdict])} {word} ({', '.join(named[verdict])})"] if named[verdict] else []
    return ", ".join(parts)


def noise(clips: Clips) -> Clips:
    """Return clips of the same sizes that have nothing in common with `clips`: noise, other ids, shuffled labels."""
    features = {m: noise_of(f) for m, f in clips.features.items()}
    return scrambled(replace(with_garbage_labels(clips, 5), features=features))


def scrambled(clips: Clips) -> Clips:
    """Replace ids and class names, which may spell the label, by numbers."""
    ids = tuple(f"item-{i}" for i in range(len(clips)))
    return replace(clips, ids=ids, class_names=tuple(f"class-{i}" for i in range(len(clips.class_names))))


def noise_of(features: Features) -> Features:
    """Make noise of the same size; of sound and words, those of other items."""
    generator = torch.Generator().manual_seed(3)
    if not isinstance(features, Tensor):
        return features.select(torch.randperm(len(features), generator=generator))
    return torch.randn(features.shape, generator=generator) * features.std() + features.mean()


def with_garbage_labels(clips: Clips, seed: int) -> Clips:
    """Give each clip the labels of another; all of them, where clips have several."""
    order = torch.randperm(len(clips), generator=torch.Generator().manual_seed(seed))
    several = None if clips.all_labels is None else clips.all_labels[order]
    return replace(clips, labels=clips.labels[order], all_labels=several)


def _ignoring_refusal(embed: Embed, clips: Clips) -> None:
    """Embed noise for what it may leave behind; an encoder that refuses it is not to blame for that."""
    try:
        embed(clips)
    except (InputError, ValueError, RuntimeError, KeyError, IndexError, TypeError):
        return


def _guarded(check: Check, case: Case) -> Finding:
    counts = {len(vectors) for vectors in case.reference.values()}
    try:
        if counts == {len(case.clips)}:
            found = check(case)
        else:  # no row can be compared with its own
            found = Finding("", Verdict.FAIL, f"{min(counts, default=0)} embeddings for {len(case.clips)} clips")
    except InputError as error:
        found = Finding("", Verdict.FAIL, f"could not be embedded: {error}")
    return replace(found, check=check.__name__.replace("_", " "))


def _vectors(embeddings: Embeddings) -> Vectors:
    return {modality: embeddings.matrix(modality) for modality in embeddings.vectors}
