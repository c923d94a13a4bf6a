"""The layouts in which the field has features on disk; one file a layout."""

from aadml.data.layouts import ave_h5, bytes_folder, embedding_dump, flat, split_keys, views
from aadml.data.layouts.layout import Layout

LAYOUTS: dict[str, Layout] = {
    "split-keys": Layout(
        "HDF5 with audio_train, visual_train, lab_train and the same for test (vegas_feature.h5, AVE_feature_...h5)",
        "h5",
        split_keys.KEYS,
        split_keys.read_split_keys,
    ),
    "flat": Layout(
        "HDF5 with audio_feat, visual_feat, Label_ID and Train_test or Split ('1' train, '0' test)",
        "h5",
        flat.KEYS,
        flat.read_flat,
    ),
    "embedding-dump": Layout(
        "HDF5 of test embeddings: featN1, featN2, testLs",
        "h5",
        embedding_dump.KEYS,
        embedding_dump.read_embedding_dump,
    ),
    "views": Layout(
        "npz with <view>_train, <view>_test, label_train, label_test; needs --audio VIEW and --visual VIEW",
        "npz",
        views.KEYS,
        views.read_views,
    ),
    "ave-h5": Layout(
        "folder with AVE's audio_feature.h5, visual_feature.h5, labels.h5 (key avadataset) and order files",
        "folder",
        ave_h5.KEYS,
        ave_h5.read_ave_h5,
    ),
    "bytes-folder": Layout(
        "folder with vgg/, inception/, classes/ (npy, 8-bit) and folds/ (lists of ids), as used for VEGAS",
        "folder",
        bytes_folder.KEYS,
        bytes_folder.read_bytes_folder,
    ),
}
"""Layouts by name, read directly wherever a feature file is asked for."""
