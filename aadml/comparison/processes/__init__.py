"""Distributed training: workers of one run that `torchrun` starts."""
