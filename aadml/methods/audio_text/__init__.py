"""Audio-text retrieval: two towers (Mei et al.), a curriculum (Chao et al.), and frames against words (Xie et al.)."""
