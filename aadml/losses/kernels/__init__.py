"""Kernels that several losses share: scores, blocks of rows, likelihoods, violation counts, generated negatives."""
