"""The experiment of docs/lab/experiments/plan.md on AA: stages, the ledger of finished runs, and the page.

`python -m scripts.experiments.anchor_aware` trains, and `python -m scripts.experiments.anchor_aware.fold` writes
docs/lab/experiments/results.md from the CSV files in its folder. The package uses aadml; aadml imports nothing from it.
"""
