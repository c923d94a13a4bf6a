"""Parts of training that a loaded model omits: code from outside aadml that is not needed for embedding."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from aadml.feature_extraction.ground.registry import Registry

_rebuilding: ContextVar[bool] = ContextVar("rebuilding", default=False)


@contextmanager
def rebuilding() -> Iterator[None]:
    """Mark methods built in this context as loaded models, which embed but are not trained."""
    token = _rebuilding.set(True)
    try:
        yield
    finally:
        _rebuilding.reset(token)


def is_rebuilding() -> bool:
    """Return whether a model is being loaded, which is not trained: options of training need not be trainable."""
    return _rebuilding.get()


def is_left_out(table: Registry[Any], name: str) -> bool:
    """Return whether the entry `name` of `table` is omitted.

    While a model is being loaded, entries with code from outside aadml are omitted.
    """
    return _rebuilding.get() and not table.is_own(name)


class LeftOut(nn.Module):
    """Loss, selection or proxy that is built only when called, from stored weights.

    Args:
        build: function that imports the code, with consent, and returns the part.
    """

    def __init__(self, build: Callable[[], Any]) -> None:
        super().__init__()
        self._build = build
        self._weights: dict[str, Tensor] = {}

    def built(self) -> Any:
        """Build the part, with the weights that were loaded.

        Raises:
            UntrustedCodeError: the user did not consent to import the code of the part.
            InputError: the code of the part is not found.
        """
        part = self._build()
        if isinstance(part, nn.Module):
            part.load_state_dict(self._weights)
        return part

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """Build the part and call it."""
        return self.built()(*arguments, **options)

    def _save_to_state_dict(self, destination: dict[str, Tensor], prefix: str, keep_vars: bool) -> None:
        destination.update({f"{prefix}{name}": values for name, values in self._weights.items()})

    def _load_from_state_dict(self, state_dict: Mapping[str, Tensor], prefix: str, *rest: Any) -> None:
        keys = [key for key in state_dict if key.startswith(prefix)]
        self._weights = {key.removeprefix(prefix): state_dict[key] for key in keys}
