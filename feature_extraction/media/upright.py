"""Frames as they are to be seen: turned and mirrored as their file says (a phone held on its side, a front camera)."""

from typing import Any

import numpy as np
from av.filter import Graph
from numpy.typing import NDArray


def upright(picture: NDArray[np.uint8], frame: Any) -> NDArray[np.uint8]:
    """Turn a picture (h, w, 3) by quarters, and mirror it, as the display matrix of its frame says.

    The matrix takes column x and row y to column `a x + c y` and row `b x + d y`; the nearest of the eight ways in
    which that is a rectangle again is taken.
    """
    matrix = _side_data(frame).get("DISPLAYMATRIX")
    if matrix is None:
        return picture
    (a, b, _), (c, d, _), _ = np.frombuffer(matrix, dtype=np.int32).reshape(3, 3).tolist()
    if abs(b) + abs(c) > abs(a) + abs(d):
        picture, a, d = picture.swapaxes(0, 1), c, b
    return np.ascontiguousarray(picture[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1])


def _side_data(frame: Any) -> Any:
    """Give what is said beside a frame; PyAV gives nothing where there is a kind it does not know, so that goes."""
    try:
        return frame.side_data
    except ValueError as error:  # "31 is not a valid Type": EXIF
        return _side_data(_without(int(str(error).split()[0]), frame))


def _without(kind: int, frame: Any) -> Any:
    """Take a kind of side data off a frame."""
    graph = Graph()
    size = {"width": frame.width, "height": frame.height, "format": frame.format, "time_base": frame.time_base}
    graph.link_nodes(
        graph.add_buffer(**size), graph.add("sidedata", f"mode=delete:type={kind}"), graph.add("buffersink")
    )
    graph.configure()
    graph.push(frame)
    return graph.pull()
