"""YAML of plain values without ambiguity: repeated keys, anchors and tags raise errors with the line.

Numbers and strings are distinguished as in YAML 1.2, except that octal and hexadecimal numbers, such as `0o17` and
`0x1F`, are strings. For example, 5e-4 and 010 (ten) are numbers, and `no` and `12:30` are strings.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import yaml

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json

LARGEST = 1 << 20
"""Largest size of a config in bytes."""
DEEPEST = 16
"""Largest depth of nested mappings and lists."""
LONGEST_NUMBER = 100
"""Largest number of digits of a whole number."""
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, tuple[str, str]] = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+", "-+0123456789"),
    "float": (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
              "-+.0123456789"),
}  # fmt: skip
"""Tag -> pattern of its scalars, and their possible first characters."""


class _Loader(yaml.SafeLoader):
    """Composer of nodes without anchors, aliases and tags. Scalars are strings or have a type in `_WORDS`."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - filled from _WORDS below, without those of YAML 1.1
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose the next node.

        Raises:
            InputError: the node is an alias, has an anchor or a tag, or is nested too deeply.
        """
        event = cast("Any", self).peek_event()
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise InputError(f"line {line}: anchors and aliases (& and *) are not allowed; write the value out")
        if event.tag:
            raise InputError(
                f"line {line}: tags ({event.tag.replace(_TAG, '!!')[:40]}) are not allowed; write a plain value"
            )
        is_nested = isinstance(event, yaml.CollectionStartEvent)
        if is_nested and self.depth == DEEPEST:
            raise InputError(
                f"line {line}: the value has more than {DEEPEST} nested mappings and lists; use fewer levels"
            )
        self.depth += is_nested
        node = super().compose_node(parent, index)
        self.depth -= is_nested
        return node


class _Dumper(yaml.SafeDumper):
    """Dumper with quotes around strings that `_Loader`, or a reader of YAML 1.1, would not parse as strings."""

    def ignore_aliases(self, data: object) -> bool:
        """Return True, so that a repeated value is written out and not as an alias."""
        return True


for _name, (_pattern, _first) in _WORDS.items():
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})$"), [*_first, *([""] * (_name == "null"))])
    _Dumper.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})$"), list(_first))


@dataclass(frozen=True)
class Document:
    """One YAML document.

    Attributes:
        value: plain value: mappings with strings as keys, lists, strings, numbers, true, false, null.
        lines: dotted key ("proxy.k") -> number of its line, from 1.
    """

    value: Json
    lines: Mapping[str, int]


def load(text: str) -> Json:
    """Return the value of a YAML document.

    Raises:
        InputError: `read` refuses the text.
    """
    return read(text).value


def read(text: str) -> Document:
    """Read a YAML document with the lines of its keys.

    Raises:
        InputError: the text is too long, is not one YAML document, or has a key or value that is not allowed. The
            message has the line, except for a text that is too long and for characters invalid in YAML.
    """
    if len(text) > LARGEST:
        raise InputError(f"the text has {len(text)} characters; write at most {LARGEST} characters")
    try:
        loader: Any = _Loader(text)
        node = loader.get_node() if loader.check_node() else None
        if loader.check_node():
            line = loader.peek_event().start_mark.line + 1
            raise InputError(f"line {line}: a second document begins; keep only one document")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        raise InputError(
            f"{place}the text is not YAML ({' '.join(str(error.problem or error.context).split())}); correct the syntax"
        ) from error
    except yaml.YAMLError as error:
        raise InputError(f"the text is not YAML ({' '.join(str(error).split())}); correct the syntax") from error
    lines: dict[str, int] = {}
    return Document(None if node is None else _value(node, "", lines), lines)


def dump(value: object, **options: Any) -> str:
    """Return plain values as YAML text; `load` of this text returns the same values."""
    text: str = yaml.dump(value, Dumper=_Dumper, **options)
    return text


def _value(node: Any, path: str, lines: dict[str, int]) -> Json:
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, path, lines) for item in node.value]
    mapping: dict[str, Json] = {}
    for key_node, inner in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != f"{_TAG}str":
            shown = key_node.value or "null" if isinstance(key_node, yaml.ScalarNode) else "(a list or mapping)"
            raise InputError(
                f"line {line}: {path or 'the top level'} has the key {shown:.80}, which is not a string; write "
                "a string in quotes as the key"
            )
        key = _word(key_node.value, line)
        where = f"{path}.{key}" if path else key
        if key in mapping:
            raise InputError(
                f"line {line}: {where} occurs twice, first in line {lines[where]}; keep one of the two values"
            )
        lines[where] = line
        mapping[key] = _value(inner, where, lines)
    return mapping


def _scalar(node: Any) -> str | float | bool | None:
    kind, line = node.tag.removeprefix(_TAG), node.start_mark.line + 1
    text: str = node.value
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "float":
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    if kind == "int" and (digits := len(text.lstrip("+-"))) > LONGEST_NUMBER:
        raise InputError(f"line {line}: the number has {digits} digits; write at most {LONGEST_NUMBER} digits")
    return int(text) if kind == "int" else _word(text, line)


def _word(text: str, line: int) -> str:
    if _NO_TEXT.search(text):
        raise InputError(
            f"line {line}: the string {text!a:.80} contains NUL or a lone surrogate; remove this character"
        )
    return text
