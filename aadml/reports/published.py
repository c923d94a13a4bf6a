"""Papers as data: the YAML files of `aadml/papers`, and the MAP that the AADML paper printed."""

import re
from functools import cache
from pathlib import Path

from aadml.configuration import strict_yaml
from aadml.feature_extraction.ground.json_values import JsonObject, nested, number

FIGURES = ("audio_visual", "visual_audio", "mean")
NOTE = (
    "Columns marked 'published' are the test MAP printed by Zeng et al. (ICMR 2024), tables 1 to 3, who state neither "
    "protocol nor spread. They cannot be compared directly with ours."
)


@cache
def read_paper(name: str) -> JsonObject:
    """Read the data of a paper: "aadml", "mei", "3cmlf" or "xie"."""
    path = Path(__file__).parents[1] / "papers" / f"{name}.yaml"
    return nested(strict_yaml.load(path.read_text(encoding="utf-8")))


def published(kind: str) -> dict[str, dict[str, dict[str, float]]]:
    """Return the published MAP of the AADML paper.

    Args:
        kind: "methods" (table 1) or "losses" (tables 2 and 3).

    Returns:
        name in aadml -> data set -> "audio_visual", "visual_audio" and "mean" -> MAP.
    """
    return {
        name: {data_set: _figures(printed) for data_set, printed in nested(by_data_set).items()}
        for name, by_data_set in nested(read_paper("aadml"), "published", kind).items()
    }


def _figures(printed: object) -> dict[str, float]:
    assert isinstance(printed, list)
    return dict(zip(FIGURES, map(number, printed), strict=True))


def data_set_of(name: str) -> str:
    """Return the data set with published MAP that occurs in the name of data, such as "AVE"; "" for other data.

    Args:
        name: name of a feature file or folder. Synthetic data ("synthetic:ave") do not count as the data set.
    """
    words = set(re.findall(r"[a-z]+", Path(name).name.partition(".")[0].lower()))
    known = {data_set for row in published("methods").values() for data_set in row}
    return "" if ":" in name else next((data_set for data_set in sorted(known) if data_set.lower() in words), "")
