"""Presets: the configs that the package contains."""

from pathlib import Path


def configs_folder() -> Path:
    """Return the folder of the presets: next to the package in a checkout, inside the package if installed."""
    package = Path(__file__).parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def preset_path(name: str) -> Path:
    """Return the path of the preset `name`, with "-" or "_" between words; the file may be absent."""
    return configs_folder() / f"{name.replace('-', '_')}.yaml"
