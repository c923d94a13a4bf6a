"""Kernels that several losses share: likelihoods, exact violation counts, generated negatives."""
