"""Methods that map all modalities into label space."""
