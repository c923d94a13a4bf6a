"""Weight files of pretrained networks: registry, download and readers."""
