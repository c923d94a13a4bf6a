"""HDF5 of embeddings of test clips: `featN1`, `featN2`, `testLs`; every row is a test clip."""

from collections.abc import Mapping
from pathlib import Path

from aadml.data.layouts.layout import Layout, LayoutArrays, left_out, same_rows
from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays, hdf5_keys

KEYS = ("featN1", "featN2", "testLs")


def read_embedding_dump(path: Path, views: Mapping[str, str]) -> LayoutArrays:
    """Read embeddings, `featN1` as audio and `featN2` as visual unless `views` names other arrays.

    Raises:
        InputError: an unreadable file, a missing key, or arrays of different lengths.
    """
    views = {"audio": "featN1", "visual": "featN2", **views}
    arrays = hdf5_arrays(path, tuple(dict.fromkeys((*views.values(), "testLs"))))
    same_rows(path, arrays)
    chosen = " and ".join(f"'{view}' is read as {modality}" for modality, view in views.items())
    return LayoutArrays(
        {modality: arrays[view] for modality, view in views.items()},
        arrays["testLs"],
        ["test"] * len(arrays["testLs"]),
        notes=[f"{chosen}; the file does not name the modalities", *left_out(hdf5_keys(path), arrays)],
    )


EMBEDDING_DUMP = Layout("embedding-dump", "h5", KEYS, read_embedding_dump, takes_views=True)
"""HDF5 of test embeddings: featN1, featN2, testLs."""
