"""Methods that make the two modalities correlate."""
