"""Front ends of networks: log-mel spectrograms, whitening, quantization, inference in batches."""
