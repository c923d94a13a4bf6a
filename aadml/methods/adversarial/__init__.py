"""Methods whose encoders play against networks that tell modalities apart."""
