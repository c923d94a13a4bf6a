"""Feature files: features of each modality, labels, ids, splits and provenance in one HDF5 file.

Version 1 has:

- the root attributes `format` and `version`;
- `/<modality>` float32 (n, d) with a JSON attribute `provenance`;
- `/label` int64 (n,), and `/id`, `/split` and `/column/<name>` UTF-8 (n,);
- `/class_names` UTF-8;
- optionally `/<modality>_sequence` (total, d) with `/<modality>_offsets` int64 (n + 1,);
- optionally `/fitted/<modality>/<name>`: arrays that were fitted to the training rows, such as a whitening;
- optionally `/fingerprint/<modality>` uint8 (n, 256), which identifies clips after re-encoding;
- for a shard of a job, `/shard` (JSON; see `content.Shard`) and `/shard_rows` int64 (n,).

Version 2 adds:

- modalities other than `audio`, `visual` and `text`, listed in the root attribute `modalities` (JSON);
- `/<modality>_present` bool (n,); the features of clips without the modality are zeros;
- `/<modality>_times` float64 (total,) beside a sequence;
- `/text_row` int64 (m,), not decreasing: for clips with several texts, the clip of each row of `/text` (m, d);
- `/label` -1 for clips without a class, and in every row of a file without class names;
- `/labels` uint8 (n, C) for clips with several classes; `/label` is the first class.

A file is written in the lowest version that can store its content. All versions can be read.

The root attribute `checksums` marks a file that ends with checksums of its blocks; see `ground/block_checksums.py`.
HDF5 ignores the checksums, and `open_hdf5` verifies the checksums. If a marked file has no checksums, the file is
damaged. A program that changes the file in place must delete the attribute `checksums`.
"""
