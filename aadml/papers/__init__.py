"""Reproduction of papers, from their data sets to one page: the AADML paper and the audio-text papers."""
