"""Contents of feature files, and whether two are the same."""

import dataclasses

import numpy as np

from aadml.feature_extraction.feature_file import FeatureFile, Timeline


def content(n: int = 4, **changes) -> FeatureFile:
    generator = np.random.default_rng(0)
    full = FeatureFile(
        features={
            "audio": generator.normal(size=(n, 3)).astype(np.float32),
            "visual": generator.normal(size=(n, 5)).astype(np.float32),
        },
        labels=np.arange(n, dtype=np.int64) % 2,
        ids=tuple(f"clip {number} é\n" for number in range(n)),
        splits=("train", "valid", "test", "train")[:n],
        class_names=("dog", "Uhu ö"),
        provenance={"audio": {"extractor": "log-mel", "weights": None}, "visual": {"extractor": "hog-color"}},
        columns={"caption_1": tuple("ab, cd"[:n]), "speaker": ("",) * n},
        sequences={"audio": Timeline(np.ones((6, 3), np.float32), np.array([0, 2, 2, 5, 6]))} if n == 4 else {},
        fitted={"visual": {"mean": np.ones(5, np.float32)}},
    )
    return dataclasses.replace(full, **changes)


def same(one: FeatureFile, other: FeatureFile) -> bool:
    def plain(value):
        if isinstance(value, np.ndarray):
            return (value.dtype.str, value.shape, value.tobytes())
        if dataclasses.is_dataclass(value):
            return plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items()}
        return value

    return plain(one) == plain(other)
