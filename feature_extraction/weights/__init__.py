"""Weight files of pretrained networks: which there are, where they come from, how they are read."""
