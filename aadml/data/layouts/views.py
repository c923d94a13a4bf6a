"""npz with a key for each part and view: `<view>_train`, `<view>_test`, and `label_train`, `label_test` or none."""

from pathlib import Path

from aadml.data.layouts.layout import Layout, ReadOptions, require, same_rows, stacked
from aadml.data.raw import assemble
from feature_extraction.feature_file import FeatureFile
from feature_extraction.foreign import npz_arrays
from feature_extraction.ground.errors import InputError

KEYS = ("*_train", "*_test")


def read_views(path: Path, options: ReadOptions) -> FeatureFile:
    """Read two views of an npz as audio and visual; a part `valid` or `val` is read where there is one.

    Raises:
        InputError: no view named for audio or visual, a missing key, pickled values, or parts that contradict.
    """
    arrays = npz_arrays(path)
    views = sorted(key.removesuffix("_train") for key in arrays if key.endswith("_train") and key != "label_train")
    for side, view in (("audio", options.audio), ("visual", options.visual)):
        if view not in views:
            given = f"'{view}' is not a view of it" if view else f"no view is named for {side}"
            raise InputError(
                f"{path}: {given}; give --audio VIEW and --visual VIEW to `aadml convert {path} F.h5`, and use F.h5; "
                f"the views are {', '.join(views) or 'none'}"
            )
    chosen = {"audio": str(options.audio), "visual": str(options.visual)}
    more = {part: "valid" for part in ("valid", "val") if f"{options.audio}_{part}" in arrays}
    parts = {"train": "train", **more, "test": "test"}
    labelled = any(key.startswith("label_") for key in arrays)
    names = dict.fromkeys((*chosen.values(), *(("label",) if labelled else ())))
    require(path, tuple(f"{name}_{part}" for part in parts for name in names), list(arrays))
    whole = {name: stacked(path, {f"{name}_{part}": arrays[f"{name}_{part}"] for part in parts}) for name in names}
    for part in parts:
        same_rows(path, {f"{name}_{part}": len(arrays[f"{name}_{part}"]) for name in names})
    return assemble(
        path,
        "views",
        features={modality: whole[view] for modality, view in chosen.items()},
        labels=whole["label"] if labelled else None,
        splits=[split for part, split in parts.items() for _ in range(len(arrays[f"{options.audio}_{part}"]))],
        class_names=options.class_names,
        notes=[f"the view '{view}' stands for {modality}" for modality, view in chosen.items()],
    )


VIEWS = Layout("npz", KEYS, read_views)
"""npz with <view>_train, <view>_test, label_train, label_test (or no labels); needs --audio VIEW and --visual VIEW."""
