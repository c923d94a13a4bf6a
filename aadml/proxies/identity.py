"""Identity proxy: every clip represents itself."""

from aadml.proxies.unchanged import Unchanged


class Identity(Unchanged):
    """Embeddings without change.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
    """
