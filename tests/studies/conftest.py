from tests.small_training import base, features

__all__ = ["base", "features"]
