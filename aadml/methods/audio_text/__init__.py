"""Audio-text retrieval: two towers (Mei et al.), a curriculum (Chao et al.), and frames against words (Xie et al.).

Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537
Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
"""
