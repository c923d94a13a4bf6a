"""The card of a model: what it is, what it was trained on, how it was scored (`README.md` in its folder)."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aadml.model.facts import Facts, Json

if TYPE_CHECKING:
    from aadml.model.model import Model


def card(model: "Model", audit: str = "") -> str:
    """Write the card of a model.

    Args:
        model: with its evaluation, where it has one.
        audit: the verdict of an audit, one sentence; empty where none was made.
    """
    facts = model.facts
    lines = [f"# {facts.label}", "", *_what(facts), "", "## Training", "", *_training(facts), "", "## Scores", ""]
    lines += _scores(model.evaluation) if model.evaluation else ["Not evaluated."]
    lines += ["", f"Audit: {audit or 'not audited; run `aadml audit` on the run.'}", "", "## Use", "", *_use(facts)]
    return "\n".join(lines) + "\n"


def _what(facts: Facts) -> Iterator[str]:
    inputs = ", ".join(f"{m} ({d} dimensions)" if d else str(m) for m, d in facts.dimensions.items())
    yield f"A model of cross-modal retrieval by `{facts.method['name']}`, made with aadml. It embeds {inputs}."
    yield f"Embeddings are compared by {facts.similarity}."
    for modality in facts.modalities:
        origin = facts.features.get(modality)
        extractor = f"`{origin['extractor']}`" if origin else "features of unknown origin"
        yield f"- {modality}: {extractor}" + (f", {_parameters(origin)}" if origin else "")


def _parameters(origin: Json) -> str:
    plain = {key: value for key, value in origin["parameters"].items() if not isinstance(value, dict | list)}
    return json.dumps(plain, ensure_ascii=False, sort_keys=True)


def _training(facts: Facts) -> Iterator[str]:
    data = facts.data
    counts = ", ".join(f"{count} {split}" for split, count in data.clips.items())
    yield f"- Data: {data.name or 'in memory'} ({counts} clips; SHA-256 {data.sha256[:16] or 'unknown'})"
    yield f"- Classes: {len(facts.class_names)}" + (
        f" ({', '.join(facts.class_names)})" if len(facts.class_names) <= 20 else ""
    )
    epoch = "" if facts.selected_epoch is None else f", epoch {facts.selected_epoch} of {facts.training['epochs']}"
    yield f"- Seed {facts.seed}{epoch}, chosen on validation clips"
    yield from (f"- Note: {note}" for note in data.notes)


def _scores(stored: Json) -> Iterator[str]:
    yield (
        f"Protocol `{stored['protocol']}`, {stored['split']} split, tie rate {stored['tie_rate']:.3f}. The interval is "
        "a 95 % bootstrap over queries of this one training."
    )
    yield from (
        "",
        "| direction | MAP | 95 % interval | chance | queries | gallery |",
        "| --- | --- | --- | --- | --- | --- |",
    )
    for name, one in stored["directions"].items():
        low, high = one["map_interval"]
        yield (
            f"| {name} | {one['map']:.4f} | {low:.4f} to {high:.4f} | {one['chance']:.4f} | {one['queries']} "
            f"| {one['gallery']} |"
        )
    for verdict in stored.get("verdicts", ()):
        yield from ("", f"**Warning**: {verdict}")


def _use(facts: Facts) -> Iterator[str]:
    first = next(iter(facts.modalities))
    yield from ("```python", "import aadml", "", 'model = aadml.load("FOLDER")')
    yield from (f"model.embed({first}={first})  # (n, {facts.dimensions[first] or 'items'}) -> (n, e)", "```")
