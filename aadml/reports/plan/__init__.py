"""The experiment of docs/experiments/plan.md: what its rows say, and the page made of them."""
