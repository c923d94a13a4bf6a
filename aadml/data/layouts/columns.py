"""npz or HDF5 with a row per clip: `audio`, `visual`, `text` (two at least), `label`, `split`, and optionally `id`.

`labels`, `splits` and `ids` are read as `label`, `split` and `id`.

Modalities of other names are listed in `modalities`, as in files of `aadml embed`, or named by the user.

Several texts per clip are stored as `text` (n, c, d), or as `text` (m, d) with `text_row` (m,), the clip of each text,
as in the files that `aadml evaluate --embeddings` reads.
"""

from collections.abc import Mapping
from pathlib import Path

from aadml.data.layouts.arrays_on_disk import matrix, read_split_column, text
from aadml.data.layouts.layout import Layout, LayoutArrays, same_rows
from aadml.feature_extraction.feature_file import Texts, in_order
from aadml.feature_extraction.feature_file.columns import PRESENT, read_columns
from aadml.feature_extraction.foreign import require_keys

KEYS = ("audio", "visual", "label")
_ROWS = ("label", "split", "id")


def read(path: Path, views: Mapping[str, str]) -> LayoutArrays:
    """Read features in columns; the column `split` divides the clips.

    Raises:
        InputError: a key is missing, values are pickled, columns differ in length, or a split is unknown.
    """
    columns = read_columns(path, views)
    arrays, beside, present = columns.features, columns.beside, columns.present
    modalities = in_order(arrays)
    if len(modalities) < 2:
        require_keys(path, KEYS, [*arrays, *beside])
    clips, texts = len(arrays[next(name for name in modalities if name != "text")]), None
    if several := columns.several_texts(clips):
        texts = Texts.sorted(matrix(several[0], f"{path}: text"), several[1])
        arrays["text"], has_text = texts.first_of_each(clips)
        present |= {} if has_text.all() else {"text": has_text}
    rows = {name: arrays[name] for name in modalities} | {key: beside[key] for key in _ROWS if key in beside}
    same_rows(path, rows | {f"{name}{PRESENT}": mask for name, mask in present.items()})
    labels = beside.get("label")
    names = tuple(text(name) for name in beside["class_names"].ravel().tolist()) if "class_names" in beside else ()
    positional = columns.labels_are_positions()
    one_hot = names and labels is not None and labels.shape[1:] == (len(names),)
    unused = f"arrays were left out: {', '.join(columns.left)} (--view NAME=KEY reads an array as a modality)"
    return LayoutArrays(
        {name: arrays[name] for name in modalities},
        labels,
        read_split_column(beside["split"], f"{path}: 'split'") if "split" in beside else None,
        ids=[text(value) for value in beside["id"].ravel().tolist()] if "id" in beside else None,
        class_names=names if positional or one_hot else None,
        positional=positional,
        present=present,
        texts=texts,
        notes=[unused] if columns.left else [],
    )


COLUMNS = Layout("columns", "npz", KEYS, read, takes_views=True)
"""npz with audio, visual, split ('train', 'valid', 'test'), and optionally label, id, text, class_names."""

COLUMNS_H5 = Layout("columns", "h5", KEYS, read, takes_views=True)
"""HDF5 with the keys of the npz: audio, visual, label, split, as `aadml embed` writes them."""
