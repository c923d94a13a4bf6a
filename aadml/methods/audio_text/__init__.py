"""Audio-text retrieval: Mei et al.'s model, the three-stage curriculum of 3CMLF, and XIE's frames against words."""
