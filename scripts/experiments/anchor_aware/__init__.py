"""The experiment of docs/experiments/plan.md: does AA help? Stages, the ledger of finished runs, and the page of both.

`python -m scripts.experiments.anchor_aware` trains, `python -m scripts.experiments.anchor_aware.fold` writes
docs/experiments/results.md from the CSV files beside it. A client of aadml, which imports nothing from here.
"""
