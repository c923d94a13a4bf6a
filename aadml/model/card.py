"""The card of a model: what it is, what it was trained on, how it was scored (`README.md` in its folder)."""

from collections.abc import Iterator, Mapping

from aadml.comparison.relevance import LABEL
from aadml.feature_extraction.ground.json_values import JsonObject, nested
from aadml.feature_extraction.ground.markdown import one_line
from aadml.model.facts import Facts
from aadml.retrieval.record import DirectionRecord, EvaluationRecord
from aadml.retrieval.summary import RELEVANCE_IN_WORDS


def card(facts: Facts, evaluation: JsonObject | None, audit: str) -> str:
    """Write the card of a model, with its evaluation and the verdict of its audit, where it has them."""
    lines = [f"# {facts.label}", "", *_what(facts), "", "## Training", "", *_training(facts), "", "## Scores", ""]
    lines += _scores(EvaluationRecord.from_json(evaluation, facts.label)) if evaluation else ["Not evaluated."]
    lines += ["", f"Audit: {audit or 'not audited; run `aadml audit` on the run'}."]
    lines += ["", "## Use", "", *_use(facts)]
    return "\n".join(lines) + "\n"


def _what(facts: Facts) -> Iterator[str]:
    inputs = " and ".join(f"{m} ({d} dimensions)" if d else m for m, d in facts.dimensions.items())
    yield f"A model of cross-modal retrieval, made with aadml by the method `{facts.method.name}`."
    yield f"It embeds {inputs}, each item alone; embeddings are compared by {facts.similarity}."
    yield ""
    for modality in facts.modalities:
        origin = facts.features.get(modality)
        if not facts.dimensions[modality]:
            yield f"- {modality}: read as it is (sound files, captions)"
        elif origin:
            settings = _plain(nested(origin, "parameters"))
            yield f"- {modality}: features of `{origin['extractor']}`" + (f" ({settings})" if settings else "")
        else:
            yield f"- {modality}: features of unknown origin"
    options = _plain(facts.method.arguments)
    yield f"- options of the method: {options}" if options else "- the method has no options"


def _plain(options: JsonObject) -> str:
    """Write options as people do; what is nested stands in `model.json`."""
    shown = {key: value for key, value in options.items() if not isinstance(value, dict | list | tuple)}
    loss = options.get("loss")
    named = [f"loss {loss['name']}"] if isinstance(loss, Mapping) else []
    proxy = options.get("proxy")
    named += [f"proxy {proxy['name']}"] if isinstance(proxy, Mapping) else []
    return ", ".join([*named, *(f"{key} {value}" for key, value in shown.items() if value is not None)])


def _training(facts: Facts) -> Iterator[str]:
    data, settings = facts.data, facts.training
    counts = ", ".join(f"{count} {split}" for split, count in data.clips.items())
    yield f"- data: {one_line(data.name) or 'in memory'} ({counts} clips; SHA-256 {data.sha256[:16] or 'unknown'})"
    names = f" ({', '.join(map(one_line, facts.class_names))})" if len(facts.class_names) <= 20 else ""
    yield f"- classes: {len(facts.class_names)}{names}" if facts.class_names else "- classes: none, pairs alone"
    if facts.selected_epoch is None:
        yield f"- fitted in closed form; seed {facts.seed}"
    else:
        chosen = "the last" if settings.select == "last" else "chosen on validation clips"
        yield (
            f"- {settings.epochs} epochs of batches of {settings.batch}, {settings.optimizer}, learning rate "
            f"{settings.learning_rate:g}, seed {facts.seed}; weights of epoch {facts.selected_epoch}, {chosen}"
        )
    yield from (f"- note: {one_line(note)}" for note in data.notes)


def _scores(stored: EvaluationRecord) -> Iterator[str]:
    yield (
        f"Protocol `{stored.protocol}`, {stored.split} split, tie rate {stored.tie_rate:.3f}. Every query "
        "ranks the full gallery, its own clip included. The interval is a 95 % bootstrap over queries of this one "
        "training."
    )
    if stored.relevance != LABEL.name:
        yield f"Relevant is {RELEVANCE_IN_WORDS[stored.relevance]}."
    yield from (
        "",
        "| direction | MAP | 95 % interval | chance | queries | gallery | MAP without the own clip |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    )
    for name, one in stored.directions.items():
        low, high = one.map_interval
        yield (
            f"| {name} | {one.map:.4f} | {low:.4f} to {high:.4f} | {one.chance:.4f} | {one.queries} "
            f"| {one.gallery} | {_without_partner(one)} |"
        )
    yield from ("", f"Mean MAP {stored.map_mean:.4f}, where a random order would give {stored.chance:.4f}.")
    for verdict in stored.verdicts or ():
        yield from ("", f"**Warning**: {verdict}")


def _without_partner(direction: DirectionRecord) -> str:
    found = nested(direction.figures, "without_partner")
    return f"{found['map']:.4f} (chance {found['chance']:.4f})" if found else "not defined"


def _use(facts: Facts) -> Iterator[str]:
    query, gallery = facts.modalities[0], facts.modalities[-1]
    yield from ("```python", "import aadml", "", 'model = aadml.load("FOLDER")')
    yield f"queries, gallery = model.embed({query}={query}), model.embed({gallery}={gallery})"
    yield from ("model.top_k(queries, gallery, k=10).indices", "```", "")
    what = (
        "features `(n, d)`, one row `(d,)`, or paths of media"
        if all(facts.dimensions.values())
        else "paths or captions"
    )
    yield f"What is given are {what}. `aadml evaluate FOLDER --data F.h5` scores it on other data, `aadml embed FOLDER"
    yield "F.h5 -o E.h5` writes embeddings, and `aadml verify FOLDER` checks the files against their checksums."
