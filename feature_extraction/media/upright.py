"""Upright frames, rotated and mirrored by the display matrix of their file.

For example, files from a rotated phone or a front camera have such a matrix.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from av.filter import Graph
from numpy.typing import NDArray

_TIME_BASE = Fraction(1, 1000)  # required by the filter graph, which does not use times
_KINDS = 64  # upper bound of the kinds of side data; FFmpeg 8.1 has 33
_MATRIX = 6  # AV_FRAME_DATA_DISPLAYMATRIX


class Orientation:
    """Display matrices of the frames of one stream.

    PyAV (18.1) frees the metadata of side data, such as the name of an ICC profile, a second time after listing the
    side data of a frame. A filter graph therefore first removes all side data except the matrix, which has no metadata.
    """

    def __init__(self) -> None:
        self._kind: tuple[int, int, str] | None = None
        self._graph = Graph()

    def upright(self, picture: NDArray[np.uint8], frame: Any) -> NDArray[np.uint8]:
        """Rotate and mirror the picture (h, w, 3) of a frame by the display matrix of the frame, if present.

        The matrix maps column x and row y to column `a x + c y` and row `b x + d y`. The nearest of the eight
        combinations of quarter turns and reflections is used. After a quarter turn, the picture is (w, h, 3).
        """
        matrix = self._matrix(frame)
        if matrix is None:
            return picture
        (a, b, _), (c, d, _), _ = np.frombuffer(matrix, dtype=np.int32).reshape(3, 3).tolist()
        if abs(b) + abs(c) > abs(a) + abs(d):
            picture, a, d = picture.swapaxes(0, 1), c, b
        return np.ascontiguousarray(picture[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1])

    def _matrix(self, frame: Any) -> Any:
        kind = (frame.width, frame.height, frame.format.name)
        if kind != self._kind:
            self._kind, self._graph = kind, _matrix_filter(frame)
        self._graph.push(frame)
        try:
            oriented: Any = self._graph.pull()
        except BlockingIOError:  # the frame has no matrix
            return None
        return oriented.side_data["DISPLAYMATRIX"]


def _matrix_filter(frame: Any) -> Graph:
    """Build a filter graph for frames with the size and format of `frame`.

    The graph outputs only frames with a display matrix, and removes all other side data of these frames.
    """
    graph = Graph()
    graph.threads = 1
    graph.link_nodes(
        graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=_TIME_BASE),
        graph.add("sidedata", f"mode=select:type={_MATRIX}"),
        *(graph.add("sidedata", f"mode=delete:type={kind}") for kind in range(_KINDS) if kind != _MATRIX),
        graph.add("buffersink"),
    )
    graph.configure()
    return graph
