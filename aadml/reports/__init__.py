"""Reports: tables, figures and self-contained pages about runs, ablations and comparisons."""
