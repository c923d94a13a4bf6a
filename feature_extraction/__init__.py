"""Conversion of media to feature files: manifests, decoding, front ends, backbones, provenance.

The package is independent of training.
"""
