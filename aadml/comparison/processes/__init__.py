"""Distributed training: workers of one training that `torchrun` starts."""
