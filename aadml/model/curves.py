"""Curves of a training run over the epochs: losses, and metrics of the validation clips."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.figures import Series, draw_curves, panels
from aadml.methods.training.session import Record, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def curves_figure(records: Sequence[Record], selected: int | None) -> "Figure":
    """Draw a panel of the losses and a panel per metric; see `Model.plot_curves`.

    The selected epoch is marked, unless `selected` is None.

    Raises:
        InputError: the records have no curves, or matplotlib is not installed.
    """
    series = training_series(records)
    if not series:
        raise InputError(
            "plot_curves: the model has no training log by epoch; train a method with epochs, or load the run of the "
            "model"
        )
    marks = selection_mark(selected)
    return panels([partial(draw_curves, series=lines, x="epoch", y=y, marks=marks) for y, lines in series.items()])


def selection_mark(selected: int | None) -> dict[str, float]:
    """Return a dict of the label and the position of the mark at the selected epoch; empty without such an epoch."""
    return {} if selected is None else {f"epoch {selected}, kept": selected}


def training_series(records: Sequence[Record]) -> dict[str, Series]:
    """Return the logged curves of the losses, of the validation metrics and of the MAP of the training clips.

    Returns:
        A dict of panels, with the label of the vertical axis as key. A panel is a dict of lines, with the label of
        the line as key. A line consists of epochs and values. The MAP of the training clips, if logged, is a line
        of the panel "MAP".
    """
    logged = list(dict.fromkeys(key for record in records for key in record))
    keys_of: dict[str, dict[str, str]] = {}
    for key in logged:
        if key == "loss" or key.endswith(("_loss", " loss")):
            keys_of.setdefault("loss", {})[key.replace("_", " ").replace("valid", "validation")] = key
        elif key.startswith("valid "):
            metric, _, direction = key.removeprefix("valid ").replace("_mean", " mean").partition(" ")
            name = metric.replace("map", "MAP")
            keys_of.setdefault(name, {})[f"validation clips, {direction or 'mean'}"] = key
    fitted = next((record for record in records if "train map_mean" in record), None)
    if fitted is not None:
        queries = f" ({fitted['train queries']:,} queries)" if "train queries" in fitted else ""
        keys_of.setdefault("MAP", {})[f"training clips, mean{queries}"] = "train map_mean"
    return {name: {title: _logged(records, key) for title, key in keys.items()} for name, keys in keys_of.items()}


def _logged(records: Sequence[Record], key: str) -> tuple[list[float], list[float]]:
    known = [numbers(record) for record in records if key in record]
    return [record["epoch"] for record in known], [record[key] for record in known]
