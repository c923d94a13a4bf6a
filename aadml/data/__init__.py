"""Data: readers of published file layouts, data sets, splits, synthetic features and rendered sample clips.

The names below are imported on first use, so that rendering sample clips does not import torch.
`aadml.data.synthetic.synthetic` draws synthetic features.
"""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.import_paths import imported_on_demand

if TYPE_CHECKING:
    from aadml.data.datasets import DATASETS
    from aadml.data.inspection.inspection import examine
    from aadml.data.reading import open_data
    from aadml.data.sample_clips import SampleClips, write_sample_clips
    from aadml.data.splitting.splits import to_splits

__all__ = ["DATASETS", "SampleClips", "examine", "open_data", "to_splits", "write_sample_clips"]

__getattr__ = imported_on_demand(
    __name__,
    {
        "DATASETS": "datasets",
        "SampleClips": "sample_clips",
        "examine": "inspection.inspection",
        "open_data": "reading",
        "to_splits": "splitting.splits",
        "write_sample_clips": "sample_clips",
    },
)
