"""The papers' tables and figures, each from its data sets by one call: what is trained, what it costs, which shard."""
