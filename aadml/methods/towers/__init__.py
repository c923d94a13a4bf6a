"""Pretrained networks of `transformers` in front of a method of vectors."""
