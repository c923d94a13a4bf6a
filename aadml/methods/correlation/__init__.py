"""Methods that maximize the correlation of two modalities."""
