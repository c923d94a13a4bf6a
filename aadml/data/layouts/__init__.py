"""LAYOUTS: registry of layouts of features; a file or folder in one of these layouts can replace a feature file."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.registry import Registry

if TYPE_CHECKING:
    from aadml.data.layouts.layout import Layout

LAYOUTS: Registry["Layout"] = Registry(
    "layout",
    {
        "split-keys": "aadml.data.layouts.split_keys:SPLIT_KEYS",
        "flat": "aadml.data.layouts.flat:FLAT",
        "embedding-dump": "aadml.data.layouts.embedding_dump:EMBEDDING_DUMP",
        "columns": "aadml.data.layouts.columns:COLUMNS",
        "columns-h5": "aadml.data.layouts.columns:COLUMNS_H5",
        "table": "aadml.data.layouts.columns:TABLE",
        "views": "aadml.data.layouts.views:VIEWS",
        "ave-h5": "aadml.data.layouts.ave_h5:AVE_H5",
        "bytes-folder": "aadml.data.layouts.bytes_folder:BYTES_FOLDER",
    },
    of="aadml.data.layouts.layout:Layout",
)
