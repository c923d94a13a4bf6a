"""Drawing in coordinates of an event: (0, 0) at its center, 1 for half its width, x to the right and y downward."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Color = tuple[float, float, float]
"""Blue, green, red, each 0..255."""

_SHIFT = 4  # coordinates for OpenCV are in sixteenths of a pixel


@dataclass(frozen=True)
class Picture:
    """A frame with the coordinates of one event.

    Args:
        image: the frame (height, width, 3), blue-green-red; it is changed in place.
        middle: center of the event, in pixels.
        unit: half the width of the event, in pixels.
        tilt: angle of the event, in radians.
    """

    image: Image
    middle: tuple[float, float]
    unit: float
    tilt: float = 0.0

    def leaning(self, radians: float, x: float = 0.0, y: float = 0.0) -> "Picture":
        """Return the same frame with the origin of the coordinates at (x, y) and the axes rotated by `radians`."""
        px, py = self._place(x, y)
        return replace(self, middle=(px, py), tilt=self.tilt + radians)

    def disc(self, x: float, y: float, radius: float, color: Color) -> None:
        """Fill a circle."""
        self.oval(x, y, radius, radius, color)

    def oval(self, x: float, y: float, width: float, height: float, color: Color) -> None:
        """Fill an ellipse of half axes `width` and `height`."""
        angle = np.linspace(0, 2 * np.pi, 28, endpoint=False)
        self.shape([(x + width * float(np.cos(a)), y + height * float(np.sin(a))) for a in angle], color)

    def box(self, left: float, top: float, right: float, bottom: float, color: Color) -> None:
        """Fill a rectangle."""
        self.shape([(left, top), (right, top), (right, bottom), (left, bottom)], color)

    def line(self, x0: float, y0: float, x1: float, y1: float, color: Color, thickness: float = 0.05) -> None:
        """Draw a straight line; the unit of `thickness` is half the width of the event."""
        import cv2

        begin, end = self._fixed(x0, y0), self._fixed(x1, y1)
        width = max(round(thickness * self.unit), 1)
        cv2.line(self.image, begin, end, color, width, cv2.LINE_AA, _SHIFT)

    def shape(self, points: Sequence[tuple[float, float]], color: Color) -> None:
        """Fill a polygon."""
        import cv2

        corners = np.asarray([self._fixed(x, y) for x, y in points], dtype=np.int32)
        cv2.fillPoly(self.image, [corners], color, cv2.LINE_AA, _SHIFT)

    def glow(self, x: float, y: float, radius: float, color: Color, strength: float) -> None:
        """Blend a color into a circle around (x, y).

        The share of the color falls from `strength` (0..1) in the center to 0 at `radius`.
        """
        px, py = self._place(x, y)
        rows = (np.arange(self.image.shape[0], dtype=np.float32) - np.float32(py)) / np.float32(radius * self.unit)
        columns = (np.arange(self.image.shape[1], dtype=np.float32) - np.float32(px)) / np.float32(radius * self.unit)
        share = np.clip(1 - np.sqrt(rows[:, None] ** 2 + columns[None, :] ** 2), 0, 1) ** 2 * np.float32(strength)
        light = np.asarray(color, dtype=np.float32)
        self.image[:] = (self.image + share[..., None] * (light - self.image)).astype(np.uint8)

    def _place(self, x: float, y: float) -> tuple[float, float]:
        cosine, sine = float(np.cos(self.tilt)), float(np.sin(self.tilt))
        right, down = x * cosine - y * sine, x * sine + y * cosine
        return self.middle[0] + right * self.unit, self.middle[1] + down * self.unit

    def _fixed(self, x: float, y: float) -> tuple[int, int]:
        px, py = self._place(x, y)
        return round(px * 2**_SHIFT), round(py * 2**_SHIFT)


def mixed(color: Color, other: Color, share: float) -> Color:
    """Return `color` moved by `share` (0..1) towards `other`."""
    blue, green, red = ((1 - share) * level + share * target for level, target in zip(color, other, strict=True))
    return blue, green, red


def darker(color: Color, share: float = 0.4) -> Color:
    """Return `color` moved by `share` (0..1) towards black."""
    return mixed(color, (0, 0, 0), share)


def lighter(color: Color, share: float = 0.4) -> Color:
    """Return `color` moved by `share` (0..1) towards white."""
    return mixed(color, (255, 255, 255), share)
