"""Models: a fitted method with the scaling of its inputs, ready to embed."""
