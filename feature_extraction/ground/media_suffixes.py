"""Endings of media files."""

SOUND_SUFFIXES = frozenset((".mp3", ".wav", ".flac", ".ogg", ".opus", ".m4a", ".aac"))
"""Endings of sound files."""

PICTURE_SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"))
"""Endings of picture files."""

MEDIA_SUFFIXES = SOUND_SUFFIXES | frozenset(
    (".mp4", ".m4v", ".mkv", ".webm", ".avi", ".mov", ".mpg", ".mpeg", ".flv", ".3gp", ".ts", ".wmv", ".ogv")
)
"""Endings of sound and video files."""
