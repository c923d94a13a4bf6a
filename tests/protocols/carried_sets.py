"""Sets of clips whose features carry labels below their values, and clean sets, which do not."""

import torch

CLASSES = 10


def drawn(seed, count=360, width=24):
    """Draw features (n, d) that are correlated with their labels (n,)."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    centers = torch.randn(CLASSES, width, generator=generator)
    return centers[labels] + 1.5 * torch.randn(count, width, generator=generator), labels


def with_column(change):
    """Return a function that changes column 3 of features by the labels."""

    def leak(values, labels):
        values = values.clone()
        values[:, 3] = change(values[:, 3], labels)
        return values

    return leak


def in_bits(values, labels):
    numbers = values.contiguous().view(torch.int32)
    return ((numbers >> 4 << 4) | labels.int()).view(torch.float32)


def in_bits_of_half(values, labels):
    numbers = values.half().view(torch.int16)
    return ((numbers >> 4 << 4) | labels.short()).view(torch.float16).float()


LEAKS = {
    "low bits of one column": with_column(in_bits),
    "low bits of float16": with_column(in_bits_of_half),
    "low bits of all columns": lambda values, labels: in_bits(values, labels[:, None].expand_as(values)),
    "digits after the third": with_column(lambda column, labels: (column * 1000).round() / 1000 + 1e-5 * labels),
    "a constant column": with_column(lambda column, labels: 1 + 6e-6 * labels),
    "a constant column, one class": with_column(lambda column, labels: 1 + 6e-6 * (labels == 1)),
    "a column of labels": with_column(lambda column, labels: labels.float()),
    "ids with the label as remainder": with_column(lambda column, labels: 16.0 * torch.arange(len(labels)) + labels),
    "ids in order of class": with_column(lambda column, labels: labels.argsort().argsort().float()),
}

CLEAN = {
    "independent of labels": lambda values: values.flip(0),
    "correlated with labels": lambda values: values,
    "well separated": lambda values: (values * 1000).round() / 1000,
    "float16": lambda values: values.half().float(),
    "bfloat16": lambda values: values.bfloat16().float(),
    "integers": lambda values: (values * 10).round(),
    "counts": lambda values: torch.poisson((values + 3).clamp_min(0) * 50, torch.Generator().manual_seed(1)),
    "bytes": lambda values: (values.sigmoid() * 255).round() / 255,
    "sparse": lambda values: (values - 1).relu(),
    "probabilities": lambda values: (3 * values).softmax(1),
    "log-normal": lambda values: (4 * values).exp(),
    "saturated": lambda values: (4 * values).tanh(),
    "far from 0": lambda values: 100 + 0.1 * values,
    "signs": lambda values: values.sign(),
}
