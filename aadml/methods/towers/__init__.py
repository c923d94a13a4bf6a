"""Pretrained networks of `transformers` that compute the input vectors of a method."""
