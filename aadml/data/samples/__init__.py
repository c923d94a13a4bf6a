"""The parts of a rendered sample clip: its scene, its event, its sound, its pictures, its captions, its file."""
