"""Methods that learn from pairs: one pair of partners per clip."""
