"""METHODS: everything that can be fitted and can embed, by name."""

from collections.abc import Callable

from aadml.methods.aadml import aadml
from aadml.methods.correlation.c_cca import c_cca
from aadml.methods.correlation.cca import cca
from aadml.methods.correlation.dcca import c_dcca, dcca
from aadml.methods.correlation.kcca import kcca
from aadml.methods.method import Method

METHODS: dict[str, Callable[..., Method]] = {
    "aadml": aadml,
    "cca": cca,
    "kcca": kcca,
    "c-cca": c_cca,
    "dcca": dcca,
    "c-dcca": c_dcca,
}
"""name -> `(context, settings, *, options) -> Method`. Keyword-only arguments named like a section of the config
receive that section; all others are options of the section `method`."""
