"""HDF5 of embeddings of test clips: `featN1`, `featN2`, `testLs`; every row is a test clip."""

from pathlib import Path

from aadml.data.layouts.arrays_on_disk import assemble
from aadml.data.layouts.layout import Layout, ReadOptions, same_rows
from aadml.feature_extraction.feature_file import FeatureFile
from aadml.feature_extraction.foreign import hdf5_arrays

KEYS = ("featN1", "featN2", "testLs")


def read_embedding_dump(path: Path, options: ReadOptions) -> FeatureFile:
    """Read embeddings; `featN1` is taken as audio and `featN2` as visual unless the options say otherwise.

    Raises:
        InputError: a missing key, or parts that contradict each other.
    """
    views = {"audio": "featN1", "visual": "featN2", **options.views}
    arrays = hdf5_arrays(path, tuple(dict.fromkeys((*views.values(), "testLs"))))
    same_rows(path, {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()})
    taken = " and ".join(f"'{view}' was taken as {modality}" for modality, view in views.items())
    return assemble(
        path,
        "embedding-dump",
        features={modality: arrays[view] for modality, view in views.items()},
        labels=arrays["testLs"],
        splits=["test"] * len(arrays["testLs"]),
        class_names=options.class_names,
        notes=[f"{taken}; the file does not say which is which"],
    )


EMBEDDING_DUMP = Layout("h5", KEYS, read_embedding_dump, ("views",))
"""HDF5 of test embeddings: featN1, featN2, testLs."""
