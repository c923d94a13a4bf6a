"""Draws of the class Clock: the paper's AVE set has 100 of its 160 clips, which the paper does not list."""

from pathlib import Path

from aadml.data.ave import CLOCK, CLOCK_LIMIT, with_drawn_clock
from aadml.data.reading import open_data
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.strings import Note

DRAWS = range(5)
"""Seeds of the draws; the tables use the first."""


def drawn_sets(data: str, folder: Path, note: Note, *, with_others: bool) -> tuple[str, dict[int, str]]:
    """Write the data of the tables, and of further draws.

    Args:
        data: features of AVE in any layout.
        folder: folder for the drawn sets, which are feature files.
        note: called with the number of clips, or with the reason why no clips are drawn.
        with_others: whether further draws are written.

    Returns:
        Path of the data of the tables, and seed -> path of further draws. If Clock has too few clips to draw from, the
        path is that of the unchanged data and there are no draws.
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
    places = {seed: folder / f"clock-draw={seed}.h5" for seed in (DRAWS if with_others else DRAWS[:1])}
    for seed, place in places.items():
        if not place.is_file():
            write_features(place, with_drawn_clock(content, seed))
    table, *others = map(str, places.values())
    return table, dict(zip(DRAWS[1:], others, strict=False))
