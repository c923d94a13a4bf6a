"""npz with a key for each part and view: `<view>_train`, `<view>_test`, and `label_train`, `label_test` or none."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from aadml.data.layouts.arrays_on_disk import assemble
from aadml.data.layouts.layout import Layout, ReadOptions, same_rows, stacked
from aadml.feature_extraction.feature_file import FeatureFile
from aadml.feature_extraction.feature_file.columns import written_as
from aadml.feature_extraction.foreign import npz_arrays, require_keys
from aadml.feature_extraction.ground.errors import InputError

KEYS = ("*_train", "*_test")
PRESENT = "_present"
"""What follows the name of a view in the keys that say which clips have it: `<view>_present_train`."""


def read_views(path: Path, options: ReadOptions) -> FeatureFile:
    """Read the views of an npz that are named as modalities; a part `valid` or `val` is read where there is one.

    Raises:
        InputError: fewer than two views named, a missing key, pickled values, or parts that contradict.
    """
    arrays = npz_arrays(path)
    label = written_as("label", {key.rpartition("_")[0] for key in arrays})
    views = sorted(
        key.removesuffix("_train")
        for key in arrays
        if key.endswith("_train")
        and key not in (f"{label}_train", *(f"{view}{PRESENT}_train" for view in options.views.values()))
    )
    chosen = options.views
    _check_named(path, options, views)
    first = next(iter(chosen.values()))
    more = {part: "valid" for part in ("valid", "val") if f"{first}_{part}" in arrays}
    parts = {"train": "train", **more, "test": "test"}
    masked = {m: view for m, view in chosen.items() if f"{view}{PRESENT}_train" in arrays}
    labelled = any(key.startswith(f"{label}_") for key in arrays)
    masks = [f"{view}{PRESENT}" for view in masked.values()]
    names = dict.fromkeys((*chosen.values(), *masks, *((label,) if labelled else ())))
    require_keys(path, tuple(f"{name}_{part}" for part in parts for name in names), list(arrays))
    whole = {name: stacked(path, {f"{name}_{part}": arrays[f"{name}_{part}"] for part in parts}) for name in names}
    for part in parts:
        same_rows(path, {f"{name}_{part}": len(arrays[f"{name}_{part}"]) for name in names})
    left = [view for view in views if view not in names]
    return assemble(
        path,
        "views",
        features={modality: whole[view] for modality, view in chosen.items()},
        labels=whole[label] if labelled else None,
        splits=[split for part, split in parts.items() for _ in range(len(arrays[f"{first}_{part}"]))],
        class_names=options.class_names,
        present={modality: whole[f"{view}{PRESENT}"] for modality, view in masked.items()},
        notes=[
            *(f"the view '{view}' stands for {modality}" for modality, view in chosen.items()),
            *([f"left out, as no modality was named for them: the views {', '.join(left)}"] if left else []),
        ],
    )


def _check_named(path: Path, options: ReadOptions, views: Sequence[str]) -> None:
    wrong = [view for view in options.views.values() if view not in views]
    if not wrong and len(options.views) > 1:
        return
    lacking = next((side for side in ("audio", "visual") if side not in options.views), "a second modality")
    given = f"'{wrong[0]}' is not a view of it" if wrong else f"no view is named for {lacking}"
    raise InputError(
        f"{path}: {given}; give --audio VIEW and --visual VIEW to `aadml convert {quote(str(path))} F.h5`, "
        f"and use F.h5; the views are {', '.join(views) or 'none'} (there are --text VIEW and --view NAME=VIEW too)"
    )


VIEWS = Layout("npz", KEYS, read_views, ("views",))
"""npz with <view>_train, <view>_test, label_train, label_test (or no labels); needs --audio VIEW and --visual VIEW."""
