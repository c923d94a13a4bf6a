"""Draws of Clock: the paper's AVE set holds 100 of its 160 clips, and which ones is not known."""

from collections.abc import Callable, Mapping
from pathlib import Path

from aadml.data import open_data
from aadml.data.ave import CLOCK, CLOCK_LIMIT, with_drawn_clock
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import InputError

DRAWS = range(5)
"""Seeds of the draws; the first is that of the tables."""


def drawn_sets(
    data: str, folder: Path, note: Callable[[str], None], *, with_others: bool
) -> tuple[str, dict[int, str]]:
    """Give the data of the tables, and those of further draws where the data allow any.

    Args:
        data: AVE's features in any layout.
        folder: where drawn sets are kept, as feature files.
        note: called with what was drawn, or why nothing was.
        with_others: whether further draws are asked for.

    Returns:
        Path of the data of the tables, and seed -> path for the further draws: the data as they are, and none, where
        Clock has no clips to spare.
    """
    content = open_data(data)
    try:
        first = with_drawn_clock(content, DRAWS[0])
    except InputError as error:
        if with_others:
            note(f"clock-draw: not measured: {error}")
        return data, {}
    counts = f"{len(first.ids)} of {len(content.ids)} clips are kept"
    note(f"{Path(data).name}: {CLOCK} has more than {CLOCK_LIMIT} clips, so {CLOCK_LIMIT} are drawn by seed ({counts})")
    places: Mapping[int, Path] = {seed: folder / f"clock-draw={seed}.h5" for seed in DRAWS}
    for seed, place in places.items():
        if not place.is_file() and (with_others or seed == DRAWS[0]):
            write_features(place, with_drawn_clock(content, seed))
    others = {seed: str(place) for seed, place in places.items() if seed != DRAWS[0]} if with_others else {}
    return str(places[DRAWS[0]]), others
