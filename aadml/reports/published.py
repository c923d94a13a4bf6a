"""Published MAP of the AADML paper, and the reader of the YAML files in `aadml/papers`, which describe papers.

Reference: Zeng et al., Anchor-aware deep metric learning for audio-visual retrieval, ICMR 2024, https://arxiv.org/abs/2404.13789
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from aadml.configuration import strict_yaml
from aadml.feature_extraction.ground.json_values import read_as

T = TypeVar("T")
NOTE = (
    "Columns marked 'published' are the test MAP in tables 1 to 3 of Zeng et al. (ICMR 2024), who state neither "
    "protocol nor spread. The published MAP cannot be compared directly with ours."
)


class PublishedMap(NamedTuple):
    """Published MAP of a method or loss on a data set."""

    audio_visual: float
    visual_audio: float
    mean: float


@dataclass(frozen=True)
class PaperPart:
    """Table or figure of the AADML paper.

    Attributes:
        title: title of the section for the table or figure.
        rows: group of trained rows; see `PaperRuns.cells`.
        data_sets: data sets of the results.
    """

    title: str
    rows: str
    data_sets: tuple[str, ...]


@dataclass(frozen=True)
class PaperDataSet:
    """Data set: name in the paper, numbers of clips and classes, and the preset that trains the losses."""

    name: str
    clips: int
    classes: int
    config: str


@dataclass(frozen=True)
class AadmlPaper:
    """Data of the AADML paper.

    Attributes:
        title: title of the paper.
        data_sets: name in aadml -> data set.
        parts: name -> table or figure.
        best_k: loss of figures 4 and 5 -> k that the paper reports as best and uses in its tables.
        neighbors: values of k, the number of neighbors, in figure 4.
        drawn_losses: losses that are trained on every draw of clips of the AVE class Clock.
        scope_methods: methods that are drawn in figure 3.
        widest_scope: largest K of figure 3.
        published: "methods" (table 1) or "losses" (tables 2 and 3) -> name in aadml -> name of the data set -> MAP.
    """

    title: str
    data_sets: Mapping[str, PaperDataSet]
    parts: Mapping[str, PaperPart]
    best_k: Mapping[str, int]
    neighbors: tuple[int, ...]
    drawn_losses: tuple[str, ...]
    scope_methods: tuple[str, ...]
    widest_scope: int
    published: Mapping[str, Mapping[str, Mapping[str, PublishedMap]]]


def read_paper(kind: type[T], name: str) -> T:
    """Read a YAML file of `aadml/papers` by its name, such as "mei", as an instance of the dataclass `kind`."""
    path = Path(__file__).parents[1] / "papers" / f"{name}.yaml"
    return read_as(kind, strict_yaml.load(path.read_text(encoding="utf-8")), path.name)


PAPER = read_paper(AadmlPaper, "aadml")


def data_set_of(name: str) -> str:
    """Return the data set of the AADML paper, such as "AVE", that the name of a file contains; "" for other names.

    Args:
        name: name of a feature file or folder. Synthetic data ("synthetic:ave") do not count as the data set.
    """
    words = set(re.findall(r"[a-z]+", Path(name).name.partition(".")[0].lower()))
    known = sorted(data_set.name for data_set in PAPER.data_sets.values())
    return "" if ":" in name else next((data_set for data_set in known if data_set.lower() in words), "")
