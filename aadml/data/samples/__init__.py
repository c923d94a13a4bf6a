"""Rendering of a sample clip: scene, event, sound, pictures, captions, file."""
