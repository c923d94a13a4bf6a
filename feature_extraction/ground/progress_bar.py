"""Progress bar on stderr."""

import sys
import time
from io import StringIO

TERMINAL_SECONDS, LOG_SECONDS = 0.1, 30.0


class Bar:
    """Progress of a task on stderr.

    On a terminal, the progress is a bar. Elsewhere, as in the log of a job, a line is written about every 30 s.

    Args:
        total: number of units; None if unknown.
        unit: name of a unit, in the singular.
        doing: description of the task.
        done: number of units that are done at the start.
        scaled: whether counts are shown in thousands, millions and so on.
    """

    def __init__(self, total: int | None, unit: str, doing: str, *, done: int = 0, scaled: bool = False) -> None:
        from tqdm import tqdm

        self.total, self.done, self.remark, self.closed = total, float(done), "", False
        self._shown: tuple[float, str] | None = None
        self._terminal = terminal = sys.stderr.isatty()
        self._seconds = TERMINAL_SECONDS if terminal else LOG_SECONDS
        self._bar = tqdm(
            total=total, initial=done, unit=unit, unit_scale=scaled, desc=doing, dynamic_ncols=True,
            bar_format=_format(total, bar=terminal, scaled=scaled), file=sys.stderr if terminal else StringIO(),
        )  # fmt: skip
        self._draw()

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start_from(self, done: float) -> None:
        """Measure the rate from now. The rate excludes the units that are done, and the time before."""
        self._bar.initial = done
        self._bar.unpause()
        self.show(done)

    def show(self, done: float, remark: str = "") -> None:
        """Update the number of units that are done, and the text `remark` after the bar.

        The bar is drawn at most once per 0.1 s, or once per 30 s in a log.
        """
        self.done, self.remark = done, remark
        if time.monotonic() - self._drawn_at >= self._seconds:
            self._draw()

    def close(self) -> None:
        """Draw the final state and close the bar."""
        if not self.closed:
            self._draw()
            self._bar.close()
            self.closed = True

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        self._bar.n = self.done
        self._bar.set_postfix_str(self.remark, refresh=False)
        if self._terminal:
            self._bar.refresh()
        elif self._shown != (self.done, self.remark):
            sys.stderr.write(f"{self._bar}\n")
            sys.stderr.flush()
        self._shown = self.done, self.remark


def _format(total: int | None, *, bar: bool, scaled: bool) -> str:
    """Return the format string for tqdm, without percentage and remaining time if there is no total."""
    count = "{n_fmt}/{total_fmt}" if scaled else "{n:.10g}/{total}"
    if total is None:
        return "{desc}: {n_fmt} [{elapsed}, {rate_fmt}{postfix}]"
    share = "{percentage:3.0f}%|{bar}|" if bar else "{percentage:3.0f}%"
    return f"{{desc}}: {share} {count} [{{elapsed}}<{{remaining}}, {{rate_fmt}}{{postfix}}]"
