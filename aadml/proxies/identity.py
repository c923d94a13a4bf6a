"""The identity proxy: every clip stands for itself, and meets the batch alone."""

from aadml.proxies.unchanged import Unchanged


class Identity(Unchanged):
    """Return embeddings as they are, behind the interface all proxies have.

    Args:
        dimension: d of the embeddings.
        modalities: that will be seen.
    """
