"""Readers of untrusted files. A file is inspected before declared sizes are allocated or links are followed."""
