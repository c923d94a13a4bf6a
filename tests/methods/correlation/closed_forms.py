"""Clips, and methods in closed form fitted on them."""

import torch

from aadml.comparison.clips import Clips
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.settings import Training


def clips(n=200, dimensions=(6, 9), classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % classes
    shared = torch.randn(n, 3, generator=generator) + 2 * torch.randn(classes, 3, generator=generator)[labels]
    features = {}
    for modality, d in zip(("audio", "visual"), dimensions, strict=True):
        mixing = torch.randn(3, d, generator=generator)
        features[modality] = shared @ mixing + 0.5 * torch.randn(n, d, generator=generator)
    return Clips(features, labels, tuple(map(str, range(n))), tuple("abcdefgh"[:classes]))


def fitted(name, data, **options):
    context = Context({m: data.dimension(m) for m in data.modalities}, len(data.class_names))
    method = METHODS[name](context, Training(), **options)
    method.fit(data, data.select(torch.arange(0)))
    return method


def correlations(method, data):
    first, second = (method.embed(data.matrix(m), m).double() for m in data.modalities)
    first, second = first - first.mean(0), second - second.mean(0)
    return (first * second).sum(0) / (first.norm(dim=0) * second.norm(dim=0))
