"""Readers of untrusted files, which are inspected before declared sizes are allocated or links are followed."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.import_paths import imported_on_demand

if TYPE_CHECKING:
    from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays, hdf5_keys, open_hdf5, require_keys
    from aadml.feature_extraction.foreign.media_tables import has_media, media_table
    from aadml.feature_extraction.foreign.numpy_files import npy_array, npz_arrays, npz_keys, read_npy, refuse_zip_bomb
    from aadml.feature_extraction.foreign.tables import (
        TablePart,
        fetch_beside,
        is_remote,
        is_table,
        local_path,
        open_tables,
        shown_address,
        table_arrays,
        table_files,
        table_keys,
    )

__all__ = [
    "TablePart",
    "fetch_beside",
    "has_media",
    "hdf5_arrays",
    "hdf5_keys",
    "is_remote",
    "is_table",
    "local_path",
    "media_table",
    "npy_array",
    "npz_arrays",
    "npz_keys",
    "open_hdf5",
    "open_tables",
    "read_npy",
    "refuse_zip_bomb",
    "require_keys",
    "shown_address",
    "table_arrays",
    "table_files",
    "table_keys",
]

__getattr__ = imported_on_demand(
    __name__,
    {
        **dict.fromkeys(("hdf5_arrays", "hdf5_keys", "open_hdf5", "require_keys"), "hdf5"),
        **dict.fromkeys(("npy_array", "npz_arrays", "npz_keys", "read_npy", "refuse_zip_bomb"), "numpy_files"),
        **dict.fromkeys(("TablePart", "fetch_beside", "is_remote", "is_table", "local_path", "open_tables"), "tables"),
        **dict.fromkeys(("has_media", "media_table"), "media_tables"),
        **dict.fromkeys(("shown_address", "table_arrays", "table_files", "table_keys"), "tables"),
    },
)
