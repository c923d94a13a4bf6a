"""How far long work is, on stderr."""

import sys
import time
from io import StringIO

TERMINAL_SECONDS, LOG_SECONDS = 0.1, 30.0


class Bar:
    """How far something is: a bar on a terminal; in a file, such as the log of a job, a line every half minute.

    Args:
        total: of what; None where that is not known.
        unit: of it, in the singular.
        doing: what is done.
        done: how much of it is there already.
        scaled: whether numbers are shown in thousands, millions and so on.
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

    def start_from(self, done: int) -> None:
        """Take what was done before as the start: it says nothing of how long the rest takes."""
        self._bar.initial = done
        self.show(done)

    def show(self, done: float, remark: str = "") -> None:
        """Show how much is done, and a remark; not every time where it is called often."""
        self.done, self.remark = done, remark
        if time.monotonic() - self._drawn_at >= self._seconds:
            self._draw()

    def clear(self) -> None:
        """Make room for a line of something else."""
        if self._terminal:
            self._bar.clear()

    def close(self) -> None:
        """Show where it ended and leave it there."""
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
    """Give the format of a bar, in the words of tqdm; without a total there is no share and no time left."""
    count = "{n_fmt}/{total_fmt}" if scaled else "{n:.10g}/{total}"
    if total is None:
        return "{desc}: {n_fmt} [{elapsed}, {rate_fmt}{postfix}]"
    share = "{percentage:3.0f}%|{bar}|" if bar else "{percentage:3.0f}%"
    return f"{{desc}}: {share} {count} [{{elapsed}}<{{remaining}}, {{rate_fmt}}{{postfix}}]"
