"""Reproduction of papers, from their data sets to one page: the AADML paper and the audio-text papers.

`reproduce` is imported on first use.
"""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.import_paths import imported_on_demand

if TYPE_CHECKING:
    from aadml.papers.reproduction import reproduce

__all__ = ["reproduce"]

__getattr__ = imported_on_demand(__name__, {"reproduce": "reproduction"})
