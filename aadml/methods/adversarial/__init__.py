"""Methods whose encoders are trained against critics or classifiers of modalities."""
