"""Models: fitted methods with the scaling of their inputs."""
