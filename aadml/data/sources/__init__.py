"""Sources that decode or read sound, frames and captions item by item, and caches of the results."""
