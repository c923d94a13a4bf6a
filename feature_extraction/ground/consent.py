"""Consent to external code: the names `module:name` that this process may import.

Without consent, a name read from a file (model, run, feature file, index, sweep, config) resolves only to built-in
entries and installed entry points. The file may come from an untrusted source, and the import of a module runs its
code. A person consents to `module:name` by typing that name (command line, Python argument). With `--trust-code`
(in Python `trust_code=True`), a person consents to the code that files name. Child processes inherit the decision.

The same holds for addresses ("s3://bucket/clips.h5", "hf:NAME"). Without consent, an address that only a file
contains is not opened.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike, fspath
from os.path import lexists
from typing import Any

from aadml.feature_extraction.ground.errors import InputError, UntrustedCodeError, hidden

_NAME = r"[^\W\d]\w*"
_PLACE = re.compile(rf"{_NAME}(\.{_NAME})*:{_NAME}")
_TYPED = re.compile(rf"(?:\w+-)*({_PLACE.pattern})(?:@\w+)?")
_BETWEEN = re.compile(r"[=,+\s{}\[\]\"']+")
_ADDRESS = re.compile(r"hf:|[^=/\s]+://")
_AFTER = re.compile(r"[\s,{}\[\]\"']")
_NO_MODULES = ("hf", "legacy", "ray", "synthetic")
"""Words before a colon that are not modules, but an extractor, a protocol, an engine or a data set."""

_names: set[str] = set()
_addresses: set[str] = set()
folders: list[str] = []
"""Folders added to `sys.path` for consented code; their packages do not count as installed."""
_trusted: ContextVar[bool] = ContextVar("trusted", default=False)
_file: ContextVar[str] = ContextVar("file", default="")


def is_place(text: object) -> bool:
    """Return whether `text` has the form "package.module:name"."""
    return isinstance(text, str) and _PLACE.fullmatch(text) is not None


def place_of(value: object) -> str:
    """Return the "package.module:name" of a function or class at the top level of a module; "" for other values."""
    place = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
    return place if callable(value) and is_place(place) else ""


def consent_to(*typed: object, paths: bool = False) -> None:
    """Consent, for the rest of this process, to import every `module:name` in values that a person typed.

    Addresses among the values ("s3://bucket/clips.h5", "--data=hf:org/name") may be opened as well. Error messages
    contain these addresses without user, query and fragment, which may be secrets.

    Args:
        typed: texts ("aa-my_losses:mine", "loss=my_losses:mine"), and mappings or sequences of them. Paths, names of
            files that exist, sentences, and words such as "synthetic:ave" are ignored.
        paths: whether the values are paths, which have no `module:name`.
    """
    for value in typed:
        if isinstance(value, str):
            _addresses.update(addresses_in(value))
            _hide_secrets(value)
            _names.update(() if paths else _names_in(value))
        elif isinstance(value, Mapping):
            consent_to(*value.values(), paths=paths)
        elif isinstance(value, list | tuple | set | frozenset):
            consent_to(*value, paths=paths)


def _hide_secrets(text: str) -> None:
    """Add the possible secrets of each address in a text or a YAML value to `hidden`."""
    for separator in re.finditer("://", text):
        rest = text[separator.end() :]
        for address in (rest, _AFTER.split(rest, maxsplit=1)[0]):
            before = address.partition("#")[0]
            place = before.partition("?")[0]
            user, last = place.partition("/")[0].rpartition("@")[0], re.split("[/.]", place)[-1] or place[-1:]
            hidden.update({f"{mark}{user}@": mark for mark in ("://", ":/") if user})
            secrets = (address[len(place) :], before[len(place) :], address[len(before) :])
            hidden.update({f"{last}{secret}": last for secret in secrets if len(secret) > 1})


def addresses_in(text: str) -> Iterator[str]:
    """Yield the address in "ADDRESS", "--data=ADDRESS" or "--set=data=ADDRESS"."""
    while text:
        if _ADDRESS.match(text):
            yield text
            return
        text = text.partition("=")[2]


def _names_in(text: str) -> Iterator[str]:
    """Yield every `module:name` of a text that is neither a path nor a sentence."""
    value = text.partition("=")[2] if text.startswith("-") else text
    is_sentence = len(value.split()) > 1 and "{" not in value and "[" not in value
    if "/" in text or "\\" in text or lexists(value) or is_sentence:
        return
    for word in _BETWEEN.split(value):
        match = _TYPED.fullmatch(word)
        if match and match[1].partition(":")[0] not in _NO_MODULES and not lexists(word):
            yield match[1]


@contextmanager
def trusting(consent: bool = True) -> Iterator[None]:
    """Set, within the context, the consent to names and addresses in files; False keeps an earlier consent."""
    token = _trusted.set(consent or _trusted.get())
    try:
        yield
    finally:
        _trusted.reset(token)


@contextmanager
def named_in(file: str | PathLike[str]) -> Iterator[None]:
    """Set the file that error messages within the context report as the source of names and addresses.

    Args:
        file: a path; "" keeps the current file.
    """
    token = _file.set(fspath(file) or _file.get())
    try:
        yield
    finally:
        _file.reset(token)


def is_trusting() -> bool:
    """Return whether all code named in files may be imported.

    Models and indexes store the result for later imports.
    """
    return _trusted.get()


def is_consented(place: str) -> bool:
    """Return whether the external object at `place` ("module:name") may be imported."""
    return _trusted.get() or place in _names


def require_consent(place: str, kind: str = "") -> None:
    """Raise UntrustedCodeError for a name without consent.

    Args:
        place: "module:name".
        kind: kind of the entry ("loss"), for the message.

    Raises:
        UntrustedCodeError: the message contains the name, the file, and how to consent.
    """
    if not is_consented(place):
        source = f"{file} names" if (file := _file.get()) else "a file or a program, and not the user, names"
        raise UntrustedCodeError(
            f"{source} {kind + ' ' if kind else ''}{place}, which is code from outside aadml and was not run; read "
            "that code, then consent with --trust-code (in Python: trust_code=True)"
        )


def require_address_consent(address: str, shown: str, remedy: str = "pass the address yourself") -> None:
    """Raise InputError for an address that comes from a file and lacks consent.

    Args:
        address: "PROTOCOL://PLACE" or "hf:NAME".
        shown: the address for the message, without secrets.
        remedy: way to consent to this address alone, for the message.
    """
    if not _trusted.get() and address not in _addresses:
        raise InputError(
            f"{shown} was not opened, because the address comes from {_file.get() or 'a file or a program'} and not "
            f"from you; {remedy}, or consent with --trust-code (in Python: trust_code=True)"
        )


def decision() -> Any:
    """Return the consent of this process, for `inherit` in a child process."""
    return frozenset(_names), _trusted.get(), tuple(folders), frozenset(_addresses)


def inherit(parent: Any) -> None:
    """Adopt the `decision` of the parent process."""
    names, trusted, entered, addresses = parent
    _names.update(names)
    _addresses.update(addresses)
    _trusted.set(trusted)
    folders.extend(entered)
