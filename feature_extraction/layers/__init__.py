"""Layers and tokenizers that several networks share."""
