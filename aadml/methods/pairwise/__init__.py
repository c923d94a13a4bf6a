"""Methods that learn from which clips belong together, one pair a clip."""
