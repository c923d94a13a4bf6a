"""Identity proxy: every clip represents itself."""

from aadml.proxies.unchanged import Unchanged


class Identity(Unchanged):
    """Proxy that equals the clip's own embedding.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
    """
