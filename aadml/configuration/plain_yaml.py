"""YAML of plain values, with numbers as people write them: 5e-4 is a number too, as YAML 1.2 has it."""

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """The safe loader, which by itself reads YAML 1.1: there 5e-4 is a string."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def load(text: str) -> Any:
    """Read one YAML document of plain values.

    Raises:
        yaml.YAMLError: it is none.
    """
    return yaml.load(text, Loader=_Loader)
