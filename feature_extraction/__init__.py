"""Media to feature files: manifests, decoding, front ends, backbones, provenance. Independent of training."""
