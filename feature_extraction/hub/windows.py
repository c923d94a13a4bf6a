"""Windows of sound or frames at a fixed hop, and one more window for the rest of the clip."""

import numpy as np
from numpy.typing import NDArray

TAIL = 0.05
"""Share of a window. A shorter rest of a clip is left out, since clips of "ten seconds" are often a bit longer."""


def starts(samples: int, window: int, hop: int) -> NDArray[np.int64]:
    """Compute the start of each window, as a sample index.

    A clip shorter than a window forms one window. A longer clip is not padded. If more than the share `TAIL` of a
    window remains, one more window ends with the clip. A shorter rest is left out.

    Args:
        samples: number of samples of the clip.
        window: number of samples of a window.
        hop: number of samples from one window to the next.

    Returns:
        (t,) sample indices, increasing.
    """
    if samples <= window:
        return np.zeros(1, dtype=np.int64)
    regular = np.arange(0, samples - window + 1, hop, dtype=np.int64)
    rest = samples - window - int(regular[-1])
    return np.append(regular, samples - window) if rest > TAIL * window else regular


def cut(samples: NDArray[np.float32], window: int, hop: int) -> list[NDArray[np.float32]]:
    """Cut samples (s,) into windows; see `starts` for the arguments."""
    return [samples[start : start + window] for start in starts(len(samples), window, hop)]


def begins(window: int, hop: int, sample_rate: int, _: int, seconds: float) -> NDArray[np.float64]:
    """Compute the start times (t,), in seconds, of the windows of a clip of length `seconds`; see `starts`."""
    return starts(round(seconds * sample_rate), window, hop) / np.float64(sample_rate)
