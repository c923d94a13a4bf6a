"""Audit: checks, with evidence, that a score does not depend on hidden information."""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Protocol as Interface

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings, checksum_of
from aadml.comparison.features import Features, Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.terminal import escaped
from aadml.protocols.row_changes import TOLERANCE, largest_change
from aadml.protocols.subprocess_embedding import Vectors, in_fresh_process
from aadml.retrieval.evaluation import mean_figure
from aadml.retrieval.scores import SIMILARITIES

Embed = Callable[[Clips], Embeddings]
Seed = Sequence[int]
Progress = Callable[[int, int], None]
"""Function that is called with the number of completed steps and the number of all steps."""


class Verdict(StrEnum):
    """Result of a check; `NOT_CHECKABLE` if the check could not be run or decided."""

    PASS = "pass"
    FAIL = "fail"
    NOT_CHECKABLE = "not checkable"


class Pipeline(Interface):
    """Subject of an audit: a computation of embeddings, and optionally of a score, from a data set."""

    @property
    def preparation(self) -> str:
        """Training by `embedder`, as a clause for the evidence; empty if `embedder` does not train the encoder."""

    @property
    def surroundings(self) -> str:
        """Code and files that the encoder can use, as a clause for the evidence."""

    @property
    def channels(self) -> Sequence[str]:
        """Channels, besides the input, through which the encoder could have received data, as phrases."""

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Return a function that embeds clips of any modalities.

        All parts specific to the data set `splits` are prepared before the function is returned.
        """

    def reported_map(self, splits: Splits, split: str) -> float | None:
        """Return the reported MAP of a split, or None if the pipeline computes no score."""


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        check: name of the check.
        verdict: pass, fail or not checkable.
        evidence: one sentence with the action and its outcome, or with the reason why the check could not be run.
    """

    check: str
    verdict: Verdict
    evidence: str

    @property
    def failed(self) -> bool:
        """Whether the check failed."""
        return self.verdict is Verdict.FAIL


CHANNELS = "channels"
"""Name of the finding on channels, besides the input, through which an encoder could have received data."""

TRAINED = "trained without test"
"""Name of the finding on a training command."""

REPEATED = ("selection", "fitted without test", TRAINED)
"""Checks that repeat the training or the preparation."""

TRAINING = (*REPEATED, "exact rows", "kept epoch", "duplicates")
"""Checks of training and its data; all others are of inference."""


class AuditReport(list[Finding]):
    """Findings of an audit, which are printed as the table of `aadml audit`.

    Attributes:
        checksum: SHA-256 of the audited embeddings; empty if there were none.
    """

    checksum: str = ""

    def __repr__(self) -> str:
        rows = [f"{finding.verdict:<13}  {finding.check:<19}  {escaped(finding.evidence)}" for finding in self]
        return "\n".join([*rows, self.summary])

    @property
    def failed(self) -> bool:
        """Whether any check failed."""
        return any(finding.failed for finding in self)

    @property
    def inference(self) -> str:
        """Verdict on the computation of embeddings: "failed", "passed" or "unknown".

        The verdict is "failed" if a check outside `TRAINING` failed. Otherwise, the verdict is "passed" if the finding
        on channels is a pass, and "unknown" if not.
        """
        findings = [finding for finding in self if finding.check not in TRAINING]
        return _verdict_on(findings, any((f.check, f.verdict) == (CHANNELS, Verdict.PASS) for f in findings))

    @property
    def training(self) -> str:
        """Verdict on training and selection: "failed", "passed" or "unknown".

        The verdict is "failed" if a check in `TRAINING` failed. Otherwise, the verdict is "passed" if a check in
        `REPEATED` passed, and "unknown" if not.
        """
        findings = [finding for finding in self if finding.check in TRAINING]
        return _verdict_on(findings, any(f.check in REPEATED and f.verdict is Verdict.PASS for f in findings))

    @property
    def summary(self) -> str:
        """Verdicts on inference and training, and the number of checks by verdict, as one line."""
        checks = {verdict: [f.check for f in self if f.verdict is verdict] for verdict in Verdict}
        parts = [f"{len(checks[Verdict.PASS])} checks passed"]
        for verdict, word in ((Verdict.FAIL, "failed"), (Verdict.NOT_CHECKABLE, "not checkable")):
            parts += [f"{len(checks[verdict])} {word} ({', '.join(checks[verdict])})"] if checks[verdict] else []
        return f"inference {self.inference}, training {self.training}; {', '.join(parts)}"


def _verdict_on(findings: Sequence[Finding], is_known: bool) -> str:
    if any(finding.failed for finding in findings):
        return "failed"
    return "passed" if is_known else "unknown"


@dataclass(frozen=True)
class Case:
    """Input of every check.

    Attributes:
        pipeline: the pipeline under audit, which is never called in this process.
        splits: the data.
        split: name of the scored split.
        seconds: time limit of a fresh process.
        seed: seed of all draws. An encoder must not be able to predict the draws.
        training: training data of the encoder, if other than `splits`; without clips if unknown.
        references: embeddings of the unchanged split, each from a separate pass.
        once: modalities that the pipeline ranks once per label, by a pass over the unchanged split.
        channels: channels of all passes, besides the input, through which the encoder could have received data.
    """

    pipeline: Pipeline
    splits: Splits
    split: str
    seconds: float
    seed: int
    training: Splits | None = None
    references: list[Vectors] = field(default_factory=list)
    once: set[Modality] = field(default_factory=set)
    channels: dict[str, None] = field(default_factory=dict)

    @property
    def clips(self) -> Clips:
        """Clips of the scored split."""
        return self.splits[self.split]

    @property
    def reference(self) -> Vectors:
        """First embeddings of the unchanged split."""
        return self.references[0]

    @cached_property
    def scores(self) -> Mapping[str, float]:
        """MAP of the reference by each similarity; see `map_of`."""
        return {similarity: self.map_of(self.reference, similarity) for similarity in SIMILARITIES}

    def draw(self, number: int) -> Seed:
        """Return the seed of a draw of this audit. Different numbers give independent draws."""
        return self.seed, number

    def refer(self) -> None:
        """Embed the unchanged split in a fresh process, and append the result to `references`."""

        def compute(embed: Embed) -> list[Vectors]:
            embeddings = embed(self.clips)
            return [_vectors(embeddings), {m: torch.empty(0) for m in embeddings.once}]

        reference, once = self._in_fresh_process(compute)
        self.references.append(reference)
        self.once.update(once)

    def embed(self, *requests: Clips, splits: Splits | None = None, first: bool = False) -> list[Vectors]:
        """Embed noise, and then the clips of each request, in a fresh process.

        An encoder that fits a state in its first call fits the state on the noise instead of the clips.

        Args:
            requests: clips of each call, in order.
            splits: data set for the preparation of the pipeline; by default the unchanged data set.
            first: whether the clips are embedded without noise before them.

        Returns:
            For each request, embeddings (n, e) by modality.

        Raises:
            InputError: the encoder failed, or took too long.
        """
        vectors = self._in_fresh_process(lambda embed: [_vectors(embed(c)) for c in requests], splits, first=first)
        return list(vectors)

    def _in_fresh_process(
        self, compute: Callable[[Embed], Sequence[Vectors]], splits: Splits | None = None, *, first: bool = False
    ) -> Sequence[Vectors]:
        def work() -> Sequence[Vectors]:
            embed = self.pipeline.embedder(splits or self.splits, self.split)
            if not first:
                with suppress(InputError, ValueError, RuntimeError, KeyError, IndexError, TypeError):  # rejected noise
                    embed(noise(self.clips, self.draw(0)))
            return compute(embed)

        results = in_fresh_process(work, seconds=self.seconds, channels=lambda: self.pipeline.channels)
        self.channels.update(dict.fromkeys(results.channels))
        return results.vectors

    def map_of(self, vectors: Vectors, similarity: str) -> float:
        """Return the mean MAP over the directions of retrieval.

        Args:
            vectors: embeddings (n, e) of the scored clips, by modality.
            similarity: key of SIMILARITIES.

        Returns:
            The MAP; NaN if modalities differ in width or do not have one row per clip.
        """
        shapes = {rows.shape for rows in vectors.values()}
        if len(shapes) != 1 or next(iter(shapes))[0] != len(self.clips):
            return math.nan
        finite = {m: v.nan_to_num() for m, v in vectors.items()}
        embeddings = self.clips.embedded(finite, similarity, once=tuple(self.once))
        return mean_figure(embeddings, "map")

    def embed_each(self, requests: Mapping[Modality, Clips]) -> Vectors:
        """Embed the clips `requests[m]` for each modality m, and return only the embeddings of m."""
        results = zip(requests, self.embed(*requests.values()), strict=True)
        return {modality: vectors[modality] for modality, vectors in results}

    def numbers(self, compute: Callable[[Embed], Sequence[float]]) -> list[float]:
        """Return the numbers that `compute` returns for the embedding function in a fresh process.

        The embedding function is first called with noise.
        """
        results = self._in_fresh_process(lambda embed: [{"numbers": torch.tensor(compute(embed), dtype=torch.float64)}])
        numbers: list[float] = results[0]["numbers"].tolist()
        return numbers


SHOWN = 5
ROUNDS = 100
"""Number of rounds that swap labels left in place by a permutation."""
REFERENCES = 3
"""Number of passes over the unchanged clips, which are hidden among the passes of the checks."""
Outcome = tuple[Verdict, str]
"""Verdict and evidence of a check."""
Judgment = Callable[[], Outcome]
"""Comparison of the embeddings of a check with the reference, after all passes."""
Check = Callable[[Case], Outcome | Judgment]


def audit(
    pipeline: Pipeline,
    splits: Splits,
    checks: Sequence[Check],
    *,
    split: str = "test",
    seconds: float = 600.0,
    seed: int | None = None,
    training: Splits | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Run checks in fresh processes. Return a finding per check, and findings on references, channels and embeddings.

    Checks and references (passes over the unchanged clips) run in random order. All passes except that of `history`
    embed the same noise first, so an encoder cannot distinguish references from these passes.

    Args:
        pipeline: the pipeline under audit.
        splits: the data for scoring the pipeline.
        checks: functions whose names are the names of the checks.
        split: split to score.
        seconds: time limit of one process.
        seed: seed of the order and of all noise and garbage; by default drawn anew. The evidence contains the seed.
        training: training data of the encoder, if other than `splits`; without clips if unknown.
        progress: called before each step, and at the end.

    Raises:
        InputError: the unchanged clips cannot be embedded.
    """
    seed = secrets.randbits(63) if seed is None else seed
    case = Case(pipeline, splits.in_memory(), split, seconds, seed, training)  # checks change and compare all clips
    steps = np.random.default_rng(case.draw(1)).permutation(len(checks) + REFERENCES).tolist()
    show = progress or (lambda done, total: None)
    results: dict[int, Outcome | Judgment] = {}
    for done, step in enumerate(steps):
        show(done, len(steps))
        if step < len(checks):
            results[step] = _attempted(checks[step], case)
        else:
            case.refer()
    findings = [Finding(c.__name__.replace("_", " "), *_judged(case, results[n])) for n, c in enumerate(checks)]
    places = [str(place) for place, step in enumerate(steps, 1) if step >= len(checks)]
    report = AuditReport([*findings, _of_references(case, places, len(steps)), _of_channels(case)])
    report.checksum = checksum_of(case.reference)
    score = "" if math.isnan(case.scores["cosine"]) else f"MAP by cosine {case.scores['cosine']:.5f}; "
    evidence = f"{score}SHA-256 of the audited embeddings {report.checksum}"
    report.append(Finding("embeddings", Verdict.PASS, evidence))
    show(len(steps), len(steps))
    return report


def _attempted(check: Check, case: Case) -> Outcome | Judgment:
    try:
        return check(case)
    except InputError as error:
        if not case.references:
            case.refer()  # raises if the unchanged clips cannot be embedded either
        return Verdict.FAIL, f"the clips could not be embedded: {error}"


def _judged(case: Case, result: Outcome | Judgment) -> Outcome:
    counts = {len(vectors) for vectors in case.reference.values()}
    if counts != {len(case.clips)}:  # rows cannot be compared
        return Verdict.FAIL, f"{min(counts, default=0)} embeddings for {len(case.clips)} clips"
    try:
        return result if isinstance(result, tuple) else result()
    except InputError as error:
        return Verdict.FAIL, f"the clips could not be embedded: {error}"


def _of_references(case: Case, places: Sequence[str], steps: int) -> Finding:
    """Return the finding on differences between the passes over the unchanged clips."""
    others = case.references[1:]
    change = max((largest_change(rows, other[m]) for other in others for m, rows in case.reference.items()), default=0)
    evidence = (
        f"the unchanged clips were embedded in steps {', '.join(places)} of {steps} (order and noise drawn with seed "
        f"{case.seed}); largest change of a row (relative): {change:.2g}"
    )
    if change <= TOLERANCE:
        return Finding("references", Verdict.PASS, evidence)
    return Finding("references", Verdict.FAIL, f"{evidence}; the encoder is random, or depends on earlier passes")


def _of_channels(case: Case) -> Finding:
    if not case.channels:
        return Finding(CHANNELS, Verdict.PASS, case.pipeline.surroundings)
    channels = list(case.channels)
    more = f" and {len(channels) - SHOWN} more" if len(channels) > SHOWN else ""
    evidence = f"the encoder could have received data by {', '.join(channels[:SHOWN])}{more}"
    return Finding(CHANNELS, Verdict.NOT_CHECKABLE, evidence)


def noise(clips: Clips, seed: Seed) -> Clips:
    """Return a copy of the clips with noise as features, other ids and class names, and shuffled labels."""
    features = {m: noise_of(f, seed) for m, f in clips.features.items()}
    return scrambled(replace(with_garbage_labels(clips, seed), features=features))


def scrambled(clips: Clips) -> Clips:
    """Replace ids and class names by numbered names, because an id or class name may contain the label."""
    ids = tuple(f"item-{i}" for i in range(len(clips)))
    return replace(clips, ids=ids, class_names=tuple(f"class-{i}" for i in range(len(clips.class_names))))


def noise_of(features: Features, seed: Seed) -> Features:
    """Return noise with the shape, mean and standard deviation of the vectors `features`.

    Sound and text are returned in random order instead.
    """
    generator = np.random.default_rng(seed)
    if not isinstance(features, Tensor):
        return features.select(torch.from_numpy(generator.permutation(len(features))))
    values = torch.from_numpy(generator.standard_normal(features.shape, dtype=np.float32))
    return values * features.std(correction=0) + features.mean()


def with_garbage_labels(clips: Clips, seed: Seed) -> Clips:
    """Permute the labels of the clips by `seed`. Several labels of a clip stay together.

    The permutation depends on all bits of the seed. A generator of torch uses only 32 bits, so an encoder could try all
    of its 2^32 permutations.
    """
    return permuted(clips, torch.from_numpy(np.random.default_rng(seed).permutation(len(clips))))


def with_other_labels(clips: Clips, seed: Seed) -> Clips:
    """Permute the labels. If no class has more than half of the clips, nearly every clip has a wrong label."""
    generator, labels = np.random.default_rng(seed), clips.labels.numpy()
    order = generator.permutation(len(labels))
    half = len(labels) // 2
    for _ in range(ROUNDS):
        pairs = generator.permutation(len(labels))[: 2 * half].reshape(2, half)
        before, after = ((labels[part] == labels[pairs]).sum(0) for part in (order[pairs], order[pairs[::-1]]))
        pairs = pairs[:, after < before]
        order[pairs] = order[pairs[::-1]]
    return permuted(clips, torch.from_numpy(order))


def permuted(clips: Clips, order: Tensor) -> Clips:
    """Permute the labels of the clips by `order` (n,). Several labels of a clip stay together."""
    several = None if clips.all_labels is None else clips.all_labels[order]
    return replace(clips, labels=clips.labels[order], all_labels=several)


def _vectors(embeddings: Embeddings) -> Vectors:
    """Return the vectors (n, e) by modality, with zeros for clips without the modality, as in files of embeddings."""
    vectors = {modality: embeddings.matrix(modality) for modality in embeddings.vectors}
    return vectors | {m: torch.where(flags[:, None], vectors[m], 0) for m, flags in embeddings.present.items()}
