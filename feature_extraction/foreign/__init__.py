"""Readers of untrusted files, which are inspected before declared sizes are allocated or links are followed."""
