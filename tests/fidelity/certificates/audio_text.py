"""Audio-text: objectives, sampling strategies, relevance, metrics and batches against their released code."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.frame_word import relevance
from aadml.comparison.relevance import Grouped
from aadml.data.captions.curriculum import objective as sum_of_squares
from aadml.methods.audio_text.negative_sampling import RANKING, STRATEGIES
from aadml.objective import Embedded, Objective
from aadml.objective.composition import LossSection, Space, compose_objective
from aadml.retrieval.directions import score_direction
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.scores import MatrixScores
from certificates.certificate import Arrays, Certificate, Errors, error, leaves, value_and_gradients, worst
from certificates.losses import objective

MEI = "XinhaoMei/audio-text_retrieval @ 13c21d9"
XIE = "xieh97/contrastive-negative-sampling @ 234ef16"
BOTH_WAYS = ("audio-text", "text-audio")
OBJECTIVES = ("triplet-sum", "triplet-max", "triplet-weighted", "nt-xent")
"""The objectives of Mei et al., by their names here."""


def released(name: str) -> dict[str, Any]:
    """Give the loss section under which an objective is the one released by Mei et al."""
    return {"name": name} | ({"mask_same_id": False, "reduction": "mean"} if name == "nt-xent" else {})


def of_pairs(of: Objective, audio: Tensor, text: Tensor, clips: Tensor, **more: Any) -> Tensor:
    """Compute what a batch of clips and captions costs."""
    embedded = Embedded({"audio": audio, "text": text}, clips, torch.arange(len(clips)), relation="id", **more)
    return of(embedded, torch.Generator().manual_seed(0))["loss"]


def objective_errors(of: Objective, name: str, arrays: Arrays) -> tuple[float, float]:
    """Compare an objective and its gradient in every stored batch, whatever the ids of its clips."""
    found, slopes = [], []
    stored = name.replace("-", "_")
    double = [key for key in arrays if key.endswith(f"/{stored}/value") and not key.startswith("repeated3_f4/")]
    for case in (key.split("/")[0] for key in double):
        points = leaves(arrays, f"{case}/audio", f"{case}/text")
        value, gradients = value_and_gradients(of_pairs(of, *points, arrays[f"{case}/clip_id"].long()), points)
        found.append((value, arrays[f"{case}/{stored}/value"]))
        wanted = [arrays[f"{case}/{stored}/gradient_{side}"] for side in ("audio", "text")]
        slopes += list(zip(gradients, wanted, strict=True))
    return worst(found), worst(slopes)


def _mei(arrays: Arrays) -> Errors:
    errors = {name: objective_errors(objective(released(name), BOTH_WAYS), name, arrays) for name in OBJECTIVES}
    masked = objective_errors(objective("nt-xent", BOTH_WAYS), "nt-xent", arrays)
    named = {f"{name}: {what}": errors[name][i] for name in OBJECTIVES for i, what in enumerate(("loss", "gradient"))}
    return named | {"nt-xent: a clip's other captions masked": max(masked)}


SPELLED = {
    "random": "random-NS", "full-mini-batch": "full-batch-NS", "cross-modality-semi-hard": "semi-hard-NS",
    "cross-modality-hard": "hard-NS", "text-based-easy": "easy-text-NS", "text-based-hard": "hard-text-NS",
    "audio-based-easy": "easy-audio-NS", "audio-based-hard": "hard-audio-NS",
}  # fmt: skip
"""The strategies, by their names here -> in the source."""


def strategy_errors(strategy: str, arrays: Arrays, make: Any) -> tuple[float, float]:
    """Compare a strategy's cost at three margins and, at the released one, its gradient by frames and words.

    Args:
        strategy: a key of STRATEGIES.
        arrays: of the reference.
        make: margin -> objective.
    """
    name = SPELLED[strategy]
    points = leaves(arrays, "frames", "words")
    clips = arrays["clip_id"].long()
    found, slopes = [], []
    for text in ("0.5", "1.0", "0.05"):
        value, gradients = value_and_gradients(_ranked(make(float(text)), *points, clips), points)
        found.append((value, arrays[f"{name}/margin_{text}/value"]))
        if text == "0.5":
            wanted = [arrays[f"{name}/margin_0.5/gradient_{side}"] for side in ("frames", "words")]
            slopes = list(zip(gradients, wanted, strict=True))
    return worst(found), worst(slopes)


def _ranked(of: Objective, frames: Tensor, words: Tensor, clips: Tensor, lengths: Tensor | None = None) -> Tensor:
    lasting = torch.full((len(frames),), frames.shape[1])
    spoken = torch.full((len(words),), words.shape[1]) if lengths is None else lengths
    sides = {"audio": (frames, lasting), "text": (words, spoken)}
    legacy = lengths is not None
    score = relevance(*sides["audio"], *sides["text"], legacy_padding=legacy)
    guides = {m: relevance(*side, *side, legacy_padding=legacy).detach() for m, side in sides.items()}
    return of_pairs(
        of, frames.mean(1), words.mean(1), clips, guides=guides,
        relevance=lambda rows, columns: score if (rows, columns) == ("audio", "text") else score.T,
    )  # fmt: skip


def strategy_objective(strategy: str, margin: float) -> Objective:
    """Compose what the method `xie` minimizes under a strategy."""
    loss = LossSection.of(RANKING.name, **vars(RANKING.options) | {"margin": margin})
    return compose_objective(
        Space(("audio", "text"), dimension=8), loss=loss, selection=STRATEGIES[strategy],
        directions=BOTH_WAYS,
    )  # fmt: skip


def as_drawn(of: Objective, arrays: Arrays) -> Objective:
    """Let an objective select the negatives that the source drew at random."""
    sides = iter([arrays["random-NS/negative_text"], arrays["random-NS/negative_audio"]] * 3)

    def chosen(comparison: Any, generator: torch.Generator) -> Any:
        only = torch.zeros_like(comparison.negatives)
        only[torch.arange(len(only)), next(sides).long()] = True
        return replace(comparison, negatives=only)

    of.selection = chosen
    return of


def _xie(arrays: Arrays) -> Errors:
    found = {}
    for strategy in STRATEGIES:

        def make(margin: float, strategy: str = strategy) -> Objective:
            of = strategy_objective(strategy, margin)
            return as_drawn(of, arrays) if strategy == "random" else of

        found[strategy] = strategy_errors(strategy, arrays, make)
    padded = []
    for strategy, name in SPELLED.items():
        if f"{name}/padded_words/margin_0.5/value" in arrays:
            lengths = arrays["padded_word_lengths"].long()
            words = arrays["frames"], arrays["padded_words"], arrays["clip_id"].long()
            value = _ranked(strategy_objective(strategy, 0.5), *words, lengths)
            padded.append((value, arrays[f"{name}/padded_words/margin_0.5/value"]))
    return {
        "loss at three margins": max(value for value, _ in found.values()),
        "gradient": max(gradient for _, gradient in found.values()),
        "loss with padded words": worst(padded),
    }


def _relevance(arrays: Arrays) -> Errors:
    lengths = {"frames": arrays["frame_lengths"].long(), "words": arrays["word_lengths"].long()}
    scores, slopes = [], []
    for name, legacy in (("padded_as_released", True), ("true_length", False)):
        frames, words = leaves(arrays, "frames", "words")
        for left, right in (("frames", "words"), ("frames", "frames"), ("words", "words")):
            values = {"frames": frames, "words": words}
            found = relevance(values[left], lengths[left], values[right], lengths[right], legacy_padding=legacy)
            spelled = {"frames": "audio", "words": "text"}
            scores.append((found, arrays[f"{name}/{spelled[left]}_{spelled[right]}"]))
            if left != right:
                _, gradients = value_and_gradients((arrays["cotangent"] * found).sum(), [frames, words])
                real = torch.arange(words.shape[1])[None, :, None] < lengths["words"][:, None, None]
                slopes.append((gradients[0], arrays[f"{name}/gradient_frames"]))
                slopes.append((gradients[1] * real, arrays[f"{name}/gradient_words_zero_in_padding"]))
    return {"score": worst(scores), "gradient": worst(slopes)}


def _mei_metrics(arrays: Arrays) -> Errors:
    count, each = 60, int(arrays["captions_per_clip"])
    columns = arrays["columns"]
    errors, bounds, medians = [], [], []
    for case in ("no_ties", "ties"):
        labels = torch.arange(count).repeat_interleave(each)
        vectors = {"audio": arrays[f"{case}/audio"].float()[labels], "text": arrays[f"{case}/text"].float()}
        embeddings = Embeddings(vectors, labels, tuple(map(str, range(count * each))), once=("audio",))
        found = evaluate(embeddings, cutoffs=(1, 5, 10, 50), extra=("map-at-k",))
        for short, name in (("a2t", "audio-text"), ("t2a", "text-audio")):
            own = found[name]
            low, high = (arrays[f"{case}/{short}/hand_rank_{side}"].numpy() + 1 for side in ("best", "worst"))
            bounds.append(float(np.maximum(low - own.rank, own.rank - high).clip(0).max()))
            if case == "no_ties":
                rates = own.curves.at(own.cutoffs).hit_rate
                ours = {f"R{k}": 100 * rates[i] for i, k in enumerate(own.cutoffs)}
                ours |= {"mAP10": 100 * own.figures["map_at", "all", "10"], "mean_rank": own.rank.mean()}
                stored = dict(zip(columns, arrays[f"{case}/{short}/figures"].tolist(), strict=True))
                errors.append(max(abs(ours[key] - stored[key]) / stored[key] for key in ours))
                medians.append(abs(float(np.median(own.rank)) - stored["median_rank"]))
    return {
        "recall, mAP@10 and mean rank": max(errors),
        "tied ranks outside of their bounds": max(bounds),
        "median rank not rounded down": max(medians),
    }


def _xie_metrics(arrays: Arrays) -> Errors:
    scores, groups = arrays["scores"].numpy(), arrays["clip_of_caption"].numpy()
    clips = np.arange(len(scores))
    sides = {"a2t": (scores, clips, groups), "t2a": (np.ascontiguousarray(scores.T), groups, clips)}
    errors = []
    for short, (values, queries, gallery) in sides.items():
        found = score_direction(MatrixScores(values), Grouped(queries, gallery), cutoffs=(1, 5, 10))
        curves = found.curves.at(found.cutoffs)
        ours = [found.average_precision.mean(), *curves.recall, *curves.hit_rate]
        errors.append(error(torch.tensor(ours), arrays[f"{short}/figures"]))
        errors.append(error(torch.from_numpy(found.average_precision), arrays[f"{short}/per_query"][0]))
    return {"mAP, recall and hit rate": max(errors)}


def _partitions(arrays: Arrays) -> Errors:
    found = []
    for case in ("n8_b2", "n9_b3"):
        sums = [sum_of_squares(arrays[f"{case}/embeddings"], rows.long()) for rows in arrays[f"{case}/partitions"]]
        found.append((torch.tensor(sums, dtype=torch.float64), arrays[f"{case}/sum_of_squared_batch_sums"]))
    return {"sum of squares of every partition": worst(found)}


AUDIO_TEXT_CERTIFICATES = (
    Certificate(
        "objectives of mei", "audio_text/mei_objectives",
        f"{MEI}, `BiDirectionalRankingLoss`, `TripletLoss`, `WeightTriplet`, `NTXent`",
        tuple(f"{name}: {what}" for name in OBJECTIVES for what in ("loss", "gradient")), _mei,
        repairs=("nt-xent: a clip's other captions masked",),
        deviations="nt-xent with `mask_same_id: false`, as the rows of the tables have it: the source's mask acts "
        "after the softmax and changes nothing. By default other captions of the clip are no negatives.",
    ),
    Certificate(
        "strategies of xie", "audio_text/xie_strategies", f"{XIE}, `TripletLoss`",
        ("loss at three margins", "gradient", "loss with padded words"), _xie,
        deviations="The random strategy on the negatives that the source drew. The published configuration has margin "
        "0.5, the paper and `configs/xie_clotho.yaml` have 1.",
    ),
    Certificate(
        "relevance of frames and words", "audio_text/xie_relevance", f"{XIE}, `score`", ("score", "gradient"),
        _relevance,
    ),
    Certificate(
        "metrics of mei", "audio_text/mei_evaluation", f"{MEI}, `a2t`, `t2a`",
        ("recall, mAP@10 and mean rank", "tied ranks outside of their bounds"), _mei_metrics,
        repairs=("median rank not rounded down",),
        deviations="Ties count by expectation here; there they fall as an unstable sort leaves them. The median rank "
        "keeps its half here.",
    ),
    Certificate(
        "metrics of xie", "audio_text/xie_metrics", f"{XIE}, `calculate_metrics`", ("mAP, recall and hit rate",),
        _xie_metrics,
    ),
    Certificate(
        "batches of 3cmlf", "audio_text/3cmlf_partitions", "equations 2 and 3 of the paper: no code is released",
        ("sum of squares of every partition",), _partitions, by_hand=True,
    ),
)  # fmt: skip
