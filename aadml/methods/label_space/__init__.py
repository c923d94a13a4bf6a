"""Methods that lead both modalities to their labels."""
