"""The feature file: features of each modality, labels, ids and splits in one HDF5 file that says where they come from.

Layout: root attributes `format`, `version`; `/<modality>` float32 (n, d) with a JSON attribute `provenance`; `/label`
int64 (n,); `/id`, `/split` UTF-8 (n,); `/class_names` UTF-8; `/column/<name>` UTF-8 (n,); optionally
`/<modality>_sequence` (total, d) with `/<modality>_offsets` int64 (n + 1,), and `/fitted/<modality>/<name>` for arrays
that were fitted on the training rows (a whitening), and `/fingerprint/<modality>` uint8 (n, 256), by which a clip is
known again after another encoding.

Version 2 adds modalities of other names than `audio`, `visual` and `text`, which the root attribute `modalities` lists
(JSON); `/<modality>_present` bool (n,) where some clips lack a modality, whose features are then zeros;
`/<modality>_times` float64 (total,) beside a sequence; `/text_row` int64 (m,), not decreasing, where clips have several
texts: the clip of each row of `/text`, which is then (m, d); `/label` -1 in every row of a file without labels, which
has no class names; and `/labels` uint8 (n, C) where clips are of several classes (`/label` is then the first). A file
is written in the lowest version that can hold it, and every version is read.
"""

from aadml.feature_extraction.feature_file.checks import check
from aadml.feature_extraction.feature_file.content import (
    DRAWN,
    FORMAT,
    UNLABELLED,
    FeatureFile,
    Incomplete,
    Shard,
    Texts,
    Timeline,
)
from aadml.feature_extraction.feature_file.names import MODALITIES, check_modality, in_order, is_modality
from aadml.feature_extraction.feature_file.reading import is_feature_file, open_features, read_features
from aadml.feature_extraction.feature_file.rows import Cursor, FeatureRows, ModalityRows, gathered, is_large, spread
from aadml.feature_extraction.feature_file.writing import write_features, write_rows

__all__ = [
    "DRAWN",
    "FORMAT",
    "MODALITIES",
    "UNLABELLED",
    "Cursor",
    "FeatureFile",
    "FeatureRows",
    "Incomplete",
    "ModalityRows",
    "Shard",
    "Texts",
    "Timeline",
    "check",
    "check_modality",
    "gathered",
    "in_order",
    "is_feature_file",
    "is_large",
    "is_modality",
    "open_features",
    "read_features",
    "spread",
    "write_features",
    "write_rows",
]
