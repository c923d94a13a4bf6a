"""Contents of feature files for tests, and their comparison."""

import dataclasses

import numpy as np

from aadml.feature_extraction.feature_file.content import FeatureFile, Texts, Timeline


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


def timed(times=(0.5, 1.5, 0.0, 0.96, 1.92, 0.25)):
    timeline = Timeline(np.ones((6, 3), np.float32), np.array([0, 2, 2, 5, 6]), np.asarray(times))
    return content(sequences={"audio": timeline})


def masked(**changes):
    """Content of which the clip in row 2 has no sound, and no rows of it over time."""
    there = np.array([True, True, False, True])
    whole = content()
    features = {**whole.features, "audio": whole.features["audio"] * there[:, None]}
    return dataclasses.replace(whole, features=features, sequences={}, present={"audio": there}, **changes)


def with_texts(rows=(0, 0, 1, 3, 3, 3), **changes) -> FeatureFile:
    values = np.random.default_rng(1).normal(size=(len(rows), 2)).astype(np.float32)
    texts = Texts.sorted(values, np.asarray(rows, dtype=np.int64))
    first, there = texts.first_of_each(4)
    several = content(texts=texts, present={} if there.all() else {"text": there})
    return dataclasses.replace(several, features=several.features | {"text": first}, **changes)


def nine_clips(values=None, times=None):
    generator = np.random.default_rng(0)
    audio = generator.normal(size=(9, 4)).astype(np.float32) if values is None else values
    sequence = generator.normal(size=(20, 4)).astype(np.float32)
    offsets = np.array([0, 2, 2, 5, 6, 10, 11, 15, 20, 20])
    return FeatureFile(
        features={"audio": audio},
        labels=np.zeros(9, dtype=np.int64),
        ids=tuple("abcdefghi"),
        splits=("train",) * 9,
        class_names=("x",),
        sequences={"audio": Timeline(sequence, offsets, times)},
    )


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
