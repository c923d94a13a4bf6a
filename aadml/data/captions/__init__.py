"""Captioned sound: caption tables, data sets, cleaning, and batches by difficulty."""
