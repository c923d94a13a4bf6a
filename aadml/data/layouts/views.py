"""npz with a key for each part and view: `<view>_train`, `<view>_test`, and optionally `label_train`, `label_test`.

`<view>_present_train` and `<view>_present_test` mark the clips that have a view.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from aadml.data.layouts.layout import Layout, LayoutArrays, read_parts
from aadml.feature_extraction.feature_file.columns import PRESENT, written_as
from aadml.feature_extraction.foreign.numpy_files import npz_arrays, npz_keys
from aadml.feature_extraction.ground.errors import InputError

KEYS = ("*_train", "*_test")


def read_views(path: Path, chosen: Mapping[str, str]) -> LayoutArrays:
    """Read the parts `train` and `test` of the views of an npz, and the validation part if present.

    Args:
        path: the npz.
        chosen: modality -> view.

    Raises:
        InputError: fewer than two chosen views, a missing view or key, pickled values, or inconsistent parts.
    """
    keys = npz_keys(path)
    label = written_as("label", {key.rpartition("_")[0] for key in keys})
    masked = {m: f"{view}{PRESENT}" for m, view in chosen.items() if f"{view}{PRESENT}_train" in keys}
    stems = {key.removesuffix("_train") for key in keys if key.endswith("_train")}
    views = sorted(stems - {label, *masked.values()})
    _check_named(path, chosen, views)
    labels = [label] if any(key.startswith(f"{label}_") for key in keys) else []
    names = list(dict.fromkeys((*chosen.values(), *masked.values(), *labels)))
    joined, splits, unused = read_parts(path, names, keys, npz_arrays)
    return LayoutArrays(
        {modality: joined[view] for modality, view in chosen.items()},
        joined[label] if labels else None,
        splits,
        present={modality: joined[mask] for modality, mask in masked.items()},
        notes=[*(f"the view '{view}' is read as {modality}" for modality, view in chosen.items()), *unused],
    )


def _check_named(path: Path, chosen: Mapping[str, str], views: Sequence[str]) -> None:
    wrong = [view for view in chosen.values() if view not in views]
    if not wrong and len(chosen) > 1:
        return
    lacking = next((side for side in ("audio", "visual") if side not in chosen), "a second modality")
    problem = f"has no view '{wrong[0]}'" if wrong else f"needs the name of a view for {lacking}"
    raise InputError(
        f"{path} {problem} (its views are {', '.join(views) or 'none'}); write a feature file: "
        f"`aadml convert {quote(str(path))} F.h5 --audio VIEW --visual VIEW` (or --text VIEW, --view NAME=VIEW)"
    )


VIEWS = Layout("views", "npz", KEYS, read_views, takes_views=True)
"""npz with <view>_train, <view>_test, label_train, label_test (or no labels); needs --audio VIEW and --visual VIEW."""
