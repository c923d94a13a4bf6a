"""Papers as data: the YAML files of `aadml/papers`, and the MAP that the AADML paper printed."""

from functools import cache
from pathlib import Path

from aadml.configuration import strict_yaml
from aadml.feature_extraction.ground.json_values import JsonObject, nested, number

FIGURES = ("audio_visual", "visual_audio", "mean")
NOTE = (
    "Columns marked 'published' are the test MAP printed by Zeng et al. (ICMR 2024), tables 1 to 3, on VEGAS and AVE, "
    "protocol and spread unstated; ours are on the data named above, so the two cannot be compared as they stand."
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
        name here -> data set -> "audio_visual", "visual_audio" and "mean".
    """
    return {
        name: {data_set: _figures(printed) for data_set, printed in nested(by_data_set).items()}
        for name, by_data_set in nested(read_paper("aadml"), "published", kind).items()
    }


def _figures(printed: object) -> dict[str, float]:
    assert isinstance(printed, list)
    return dict(zip(FIGURES, map(number, printed), strict=True))


def data_sets(kind: str) -> list[str]:
    """Return the data sets of the published MAP, as the paper calls them."""
    return list(dict.fromkeys(name for by_data_set in published(kind).values() for name in by_data_set))
