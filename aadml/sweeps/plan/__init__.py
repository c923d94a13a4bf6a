"""The experiment of docs/experiments/plan.md: what is trained, in which stages, and the ledger of what is finished."""
