"""Reproduction of the AADML paper and of the audio-text papers, from the data sets of a paper to one page."""
