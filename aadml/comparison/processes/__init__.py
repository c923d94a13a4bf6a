"""Distributed training: `torchrun` starts several workers of one run."""
