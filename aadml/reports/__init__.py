"""Reports: tables, figures and self-contained pages of runs, ablations and comparisons."""
