"""Runs: one config turned into one folder: trained, evaluated, embedded with, audited."""
