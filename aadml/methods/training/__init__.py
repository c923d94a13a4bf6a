"""Training of learners: the loop, its session, settings, optimizers, precision and warnings."""
