"""Evaluation of a model, of embeddings of other programs, or of a run under its protocol.

Scoring embeddings does not import the code of models, configs, HDF5 and media.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings, checksum_of
from aadml.comparison.relevance import check_relevance
from aadml.data.captions.several_texts import every_text
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.strings import Note, listed
from aadml.model.model import Model
from aadml.retrieval.evaluation import evaluate as evaluate_embeddings
from aadml.retrieval.judgments import chosen_relevance, judgment_notes, relevance_name
from aadml.retrieval.metric_names import Gallery
from aadml.retrieval.results import Evaluation
from aadml.retrieval.sampling import SEED


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `aadml.retrieval.evaluation.evaluate`."""

    gallery: Gallery = "full"
    extra: tuple[str, ...] = ()
    queries: int | None = None

    def changed(self) -> list[str]:
        """Return the values that differ from their defaults, as parts of a file name."""
        gallery = [] if self.gallery == "full" else [self.gallery]
        sample = [] if self.queries is None else [f"queries-{self.queries}-seed-{SEED}"]
        return [*gallery, *self.extra, *sample]


FULL = Options()

TRIVIAL_CHANCE = 0.999
"""Chance level of MAP from which a warning is issued."""


@with_consent("model", "embeddings", "data")
def evaluate(
    model: Model | str | Path | None = None,
    *,
    embeddings: Embeddings | Clips | str | Path | None = None,
    data: str | Path | Splits | Clips | None = None,
    split: str | None = None,
    protocol: str | None = None,
    allow_other_features: bool = False,
    metrics: Sequence[str] | str | None = (),
    relevance: str | Path | None = None,
    exclude_partner: bool = False,
    disjoint: bool = False,
    queries: int | None = None,
    cluster: str | None = None,
    trust_code: bool = False,
    on_note: Note | None = None,
) -> Evaluation:
    """Score a model or external embeddings.

    By default, every query ranks the whole gallery. Ties count by the expectation over their orders.

    Args:
        model: a model, or the path of a run or a model folder.
        embeddings: npz or HDF5 file to score instead of a model. The file contains at least two of audio, visual
            and text (n, d), and optionally label, id and split (n,), and similarity, a word such as dot or euclidean
            (in HDF5 an attribute; cosine by default). Several captions per clip are stored as text (n, c, d), or as
            text (m, d) with the clip of each caption in text_row (m,). In Python, `Embeddings` or `Clips` of embedded
            vectors are accepted too.
        data: data to score the model on; by default the data of the run. A model without its run (a model folder, in
            Python also a `Model`) needs this argument. All clips of `Clips` are scored.
        split: split to score: "train", "valid" or "test"; by default test. `Clips` and embeddings without splits
            are scored completely.
        protocol: protocol of `aadml list protocols`, or several legacy protocols joined by "+"; by default the
            protocol of the model. Embeddings are scored unchanged, and this argument is only the name of the
            protocol that made the embeddings.
        allow_other_features: score features of a different extractor than that of the training features.
        metrics: further metrics of `aadml list metrics`, such as recall@3. A metric without a cutoff, such as
            recall, is computed at all cutoffs of the printed table. Several metrics are separated by commas, or
            passed as a list.
        relevance: relevance rule: "own" for the partner alone, "label" for the class of the query, "labels" or
            "labels-graded" for items that share a class with the query, or a file of judgments. The format of the
            file is query,item,grade or TREC qrels. The default is the rule of the run or of the data.
        exclude_partner: remove each query's own clip from the gallery and from the relevant items.
        disjoint: divide the clips into halves by one fixed draw, balanced by class where possible. Queries of each
            half rank the other half.
        queries: number of random queries of each direction, to estimate MAP in less time; by default all. Each
            query ranks the whole gallery.
        cluster: column of the data (speaker, recording) whose groups of clips are resampled for the intervals of
            MAP. The default is the column chosen in the run. Without a column, single clips are resampled.
        trust_code: import the code from outside aadml that the model names as `module:name`.
        on_note: called with notes for the user.

    Returns:
        The evaluation. The evaluation of a run on its own data is added to the run as
        `evaluations/<protocol>-<split>.json`, with every changed option in the name.

    Raises:
        InputError: a model, data or embeddings that cannot be read, an argument that is invalid or does not apply,
            or no clips to score.

    Example:
        >>> model = aadml.fit("synthetic:ave", method="cca")
        >>> evaluation = aadml.evaluate(model, data="synthetic:ave", split="valid")
        >>> evaluation.split, [direction.name for direction in evaluation.directions]
        ('valid', ['audio-visual', 'visual-audio'])
    """
    note = on_note or (lambda message: None)
    if exclude_partner and disjoint:
        raise InputError(
            "evaluate: exclude_partner and disjoint cannot be combined, because disjoint separates partners; pass only "
            "disjoint"
        )
    options = Options(
        extra=listed(metrics), queries=queries,
        gallery="without-partner" if exclude_partner else "disjoint" if disjoint else "full",
    )  # fmt: skip
    if (model is None) == (embeddings is None):
        problem = "neither a model nor embeddings were" if model is None else "both a model and embeddings were"
        raise InputError(f"evaluate: {problem} passed; pass either a model (a run, a model folder) or embeddings")
    if data is not None and model is None:
        raise InputError("evaluate: data applies only to a model; leave out data")
    if allow_other_features and (model is None or data is None):
        raise InputError(
            "evaluate: allow_other_features applies only to a model on other data; pass a model and data, or leave out "
            "allow_other_features"
        )
    rule = relevance_name(relevance)
    if cluster is not None and model is None:
        raise InputError(
            f"evaluate: cluster '{cluster}' is a column of data, but embeddings are scored; pass a model instead of "
            "embeddings, or leave out cluster"
        )
    if model is None:
        evaluation = _of_embeddings(embeddings, split, protocol, note, options, rule)
    else:
        from aadml.runs.data import Rules
        from aadml.runs.protocol_scores import evaluate_model

        evaluation = evaluate_model(
            model, data, split, protocol, options, Rules(rule, cluster), allow=allow_other_features, on_note=note
        )
    for result in evaluation.directions:
        if (chance := float(result.chance.mean())) >= TRIVIAL_CHANCE:
            note(
                f"warning: {result.name}: the chance level of MAP is {chance:.4f}, because nearly all clips are"
                " relevant to each query; this MAP does not measure the embeddings, so score clips of several classes"
            )
    return evaluation


def _of_embeddings(
    embeddings: Embeddings | Clips | str | Path | None, split: str | None, protocol: str | None, note: Note,
    options: Options, relevance: str | None,
) -> Evaluation:  # fmt: skip
    dimensions: list[str] | None = None
    if isinstance(embeddings, Clips):
        clips = every_text(embeddings)
        embeddings = clips.embedded({m: clips.matrix(m) for m in clips.modalities})
    if isinstance(embeddings, Embeddings):
        vectors, chosen = embeddings, split or "all"
    else:
        from aadml.retrieval.embeddings_file import model_classes, read_embeddings

        assert embeddings is not None
        search_beside(Path(embeddings))
        vectors, chosen = read_embeddings(embeddings, split, note)
        dimensions = model_classes(embeddings)
        if split and chosen == "all":
            note(f"{embeddings} has no 'split', so all its {len(vectors)} clips are scored")
        checksum = checksum_of({m: vectors.matrix(m) for m in vectors.vectors})
        note(f"the SHA-256 of the embeddings is {checksum}; compare this value with the SHA-256 in the audit")
    if relevance is not None:
        vectors = replace(vectors, relevance=chosen_relevance(relevance))
        check_relevance(vectors.relevant, vectors, "the embeddings")
        for message in judgment_notes(vectors.relevant, vectors.ids):
            note(message)
    if protocol:
        note(f"protocol {protocol} describes how the embeddings were computed; the embeddings are scored unchanged")
    evaluation = evaluate_embeddings(vectors, protocol=protocol or "unstated", split=chosen, **vars(options))
    if dimensions is not None and dimensions != list(vectors.class_names):
        return replace(evaluation, label_space={})  # the dimensions are those of other classes
    return evaluation
