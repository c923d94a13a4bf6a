"""Models: a fitted method with the scaling of its inputs, which embeds items."""
