"""Readers of untrusted files.

A file is inspected before any allocation of a declared size and before any link is followed.
"""
