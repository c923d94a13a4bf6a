"""What `aadml inspect` reports about a feature file."""
