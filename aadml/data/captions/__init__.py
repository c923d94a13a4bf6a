"""Captioned sound: tables of captions, data sets, cleaning, and batches by difficulty."""
