"""Contracts of registries: signatures and results."""

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Protocol

import numpy as np
import pytest
from typing_extensions import TypeAliasType

from aadml.feature_extraction.ground.contracts import (
    Condition,
    expected,
    require_contract,
    require_part,
    require_result,
)
from aadml.feature_extraction.ground.errors import InputError

Alias = TypeAliasType("Alias", np.ndarray)  # as `numpy.typing.NDArray` is since NumPy 2.5
Positive = Annotated[int, Condition("a positive int", lambda number: number > 0)]


@dataclass(frozen=True)
class Pair:
    first: int
    second: int
    note: str = ""


class Named(Protocol):
    name: str

    def size(self) -> int: ...


class ToPair(Protocol):
    def __call__(self, left: int, right: int, /, **options: Any) -> Pair: ...


class ToNumber(Protocol):
    def __call__(self, **options: Any) -> Positive: ...


class ToList(Protocol):
    def __call__(self, **options: Any) -> list[Pair]: ...


class ToAlias(Protocol):
    def __call__(self, **options: Any) -> Annotated[Alias, Condition("a pair", lambda values: len(values) == 2)]: ...


class ToNamed(Protocol):
    def __call__(self, left: int, /, **options: Any) -> Named: ...


class Shape(ABC):
    @abstractmethod
    def width(self) -> int: ...

    @abstractmethod
    def area(self) -> int: ...


class ToShape(Protocol):
    def __call__(self) -> Shape: ...


@dataclass(frozen=True)
class Loose:
    first: int = 0
    second: int = 1


class Module:
    def __init__(self, *, width=1):
        self.width = width

    def forward(self, left, right):
        return Pair(left, right)


def variadic(*numbers, **options):
    return Pair(*numbers)


@pytest.mark.parametrize(
    ("contract", "text"),
    [
        (ToPair, "(left, right, *, options) -> Pair(first, second)"),
        (ToNumber, "(*, options) -> a positive int"),
        (ToList, "(*, options) -> list of Pair"),
        (ToNamed, "(left, *, options) -> Named with name, size"),
        (ToShape, "() -> Shape with area, width"),
        (Pair, "an object Pair(first, second)"),
        (Loose, "an object Loose(first, second)"),
    ],
)
def test_a_contract_has_a_text(contract, text):
    assert expected(contract) == text


@pytest.mark.parametrize("entry", [variadic, Module, divmod, lambda left, right=2, third=3: None])
def test_functions_that_accept_the_arguments_keep_the_contract(entry):
    require_contract(entry, ToPair, "pair", "some:entry")


@pytest.mark.parametrize(
    ("entry", "fault"),
    [(lambda left: None, "takes left"), (lambda a, b, c: None, "takes a, b, c"), (3, "is an int")],
)
def test_other_entries_break_it(entry, fault):
    with pytest.raises(InputError, match=f"^pair some:entry {fault}.*; define a pair as "):
        require_contract(entry, ToPair, "pair", "some:entry")


@pytest.mark.parametrize(
    ("contract", "value"),
    [(ToPair, Pair(1, 2)), (ToNumber, 1), (ToList, [Pair(1, 2)]), (ToList, []), (ToAlias, np.zeros(2))],
)
def test_a_result_is_returned(contract, value):
    assert require_result(value, contract, "pair", "some:entry") is value


@pytest.mark.parametrize(
    ("contract", "value", "fault"),
    [
        (ToPair, None, "returned None; define a pair as"),
        (ToNumber, -1, "returned an int; define a pair as"),
        (ToList, [Pair(1, 2), 3], "returned a list; define a pair as"),
        (ToNamed, Pair(1, 2), "returned a Pair without name, size; define a pair as"),
        (ToNamed, Named, "returned a _ProtocolMeta without name; define a pair as"),
        (ToNumber, "1", "returned a str; define a pair as"),
        (ToPair, np.zeros(3), r"returned a ndarray of shape \(3,\); define a pair as"),
    ],
)
def test_a_wrong_result_is_an_error(contract, value, fault):
    with pytest.raises(InputError, match=f"^pair some:entry {fault}"):
        require_result(value, contract, "pair", "some:entry")


def test_a_part_of_a_result_is_checked_by_its_condition():
    (positive,) = Positive.__metadata__
    require_part(1, positive, "first", "pair", variadic)
    with pytest.raises(
        InputError, match=r"^pair [a-z._]*test_contracts:variadic returned an int as first; return a positive int \(see"
    ):
        require_part(-1, positive, "first", "pair", variadic)


def test_a_callable_without_signature_is_checked_by_its_result():
    require_contract(operator.itemgetter, ToPair, "pair", "some:entry")
    with pytest.raises(InputError, match="pair operator:itemgetter returned None"):
        require_result(None, ToPair, "pair", operator.itemgetter)


def test_an_entry_is_named_by_its_function_or_class():
    for entry, name in ((partial(partial(variadic, 1), 2), "variadic"), (Module, "Module"), (Module(), "Module")):
        with pytest.raises(InputError, match=f"^pair [a-z._]*test_contracts:{name} returned None; define a pair as"):
            require_result(None, ToPair, "pair", entry)


def test_an_object_is_of_its_class_and_a_function_can_be_called():
    require_contract(Pair(1, 2), Pair, "pair", "some:entry")
    require_contract(len, None, "encoder", "some:entry")
    with pytest.raises(
        InputError, match=r"^encoder some:entry is None, which cannot be called; pass a function or a cl"
    ):
        require_contract(None, None, "encoder", "some:entry")
    with pytest.raises(
        InputError, match=r"^encoder some:entry is a function; define an encoder as an object Pair\(first, sec"
    ):
        require_contract(variadic, Pair, "encoder", "some:entry")
