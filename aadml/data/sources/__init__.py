"""Sources of items: sound, frames and captions decoded or read item by item, and their caches."""
