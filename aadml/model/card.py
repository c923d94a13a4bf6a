"""The card of a model: `README.md` in its folder, rendered from `card.md.jinja`."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.markdown import inline
from aadml.model.facts import Facts
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.summary import RELEVANCE_IN_WORDS

if TYPE_CHECKING:
    from jinja2 import Template


def card(facts: Facts, record: EvaluationRecord | None, audit: str) -> str:
    """Return the card of a model in Markdown.

    Args:
        facts: facts of the model.
        record: evaluation of the model; None if the model was not scored.
        audit: verdict of the audit; empty if there was no audit.
    """
    return _template().render(facts=facts, record=record, audit=audit, relevance=RELEVANCE_IN_WORDS)


@cache
def _template() -> "Template":
    from jinja2 import Environment

    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        finalize=lambda value: inline(str(value)),  # no value begins a line, a tag or a link
    )  # fmt: skip
    environment.filters |= {"code": _code, "options": _options}
    return environment.from_string(Path(__file__).with_name("card.md.jinja").read_text(encoding="utf-8"))


def _code(name: object) -> str:
    """Return a name as a code span, without backticks inside."""
    return f"`{str(name).replace('`', '')}`"


def _options(options: object) -> str:
    """Return options as text, such as "loss triplet, proxy identity, k 3".

    The text has the names of the sections `loss` and `proxy`, and then each option with a plain value. Options
    without a value are omitted. Lists, mappings and the options of sections are only in `model.json`.
    """
    options = options if isinstance(options, Mapping) else {}
    sections = {key: value for key in ("loss", "proxy") if isinstance(value := options.get(key), Mapping)}
    plain = {key: value for key, value in options.items() if not isinstance(value, Mapping | list | tuple)}
    words = [f"{key} {section['name']}" for key, section in sections.items()]
    return ", ".join([*words, *(f"{key} {value}" for key, value in plain.items() if value is not None)])
