"""Media to feature files: manifests, decoding, front ends, backbones, provenance. Knows nothing of learning."""
