"""Audio-visual and audio-text cross-modal metric learning with Anchor-Aware proxies."""
