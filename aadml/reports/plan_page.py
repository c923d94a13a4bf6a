"""The page of the experiment of docs/experiments/plan.md, made of its CSV files alone."""

from pathlib import Path

from feature_extraction.ground.atomic import write_text

PAGE = "results.md"


def write_plan_page(folder: Path) -> Path:
    """Write the page of an experiment."""
    write_text(folder / PAGE, "# Results\n")
    return folder / PAGE
