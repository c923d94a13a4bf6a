"""Readers of untrusted files, which are inspected before declared sizes are allocated or links are followed."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.import_paths import imported_on_demand

if TYPE_CHECKING:
    from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays, hdf5_keys, open_hdf5, require_keys
    from aadml.feature_extraction.foreign.numpy_files import npy_array, npz_arrays, npz_keys, read_npy, refuse_zip_bomb

__all__ = [
    "hdf5_arrays",
    "hdf5_keys",
    "npy_array",
    "npz_arrays",
    "npz_keys",
    "open_hdf5",
    "read_npy",
    "refuse_zip_bomb",
    "require_keys",
]

__getattr__ = imported_on_demand(
    __name__,
    {
        **dict.fromkeys(("hdf5_arrays", "hdf5_keys", "open_hdf5", "require_keys"), "hdf5"),
        **dict.fromkeys(("npy_array", "npz_arrays", "npz_keys", "read_npy", "refuse_zip_bomb"), "numpy_files"),
    },
)
