"""Files from strangers: looked at before anything in them is allocated or followed."""

from feature_extraction.foreign.column_names import written_as
from feature_extraction.foreign.hdf5 import open_hdf5
from feature_extraction.foreign.numpy_files import npy_array, npz_arrays, npz_keys, read_npy, refuse_zip_bomb

__all__ = ["npy_array", "npz_arrays", "npz_keys", "open_hdf5", "read_npy", "refuse_zip_bomb", "written_as"]
