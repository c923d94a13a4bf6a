"""The configs that come with the package."""

from pathlib import Path


def configs_folder() -> Path:
    """Find the shipped configs: beside the package in a checkout, inside it once installed."""
    package = Path(__file__).parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"
