"""Decoding of sound and frames of media files. Every failure has a reason from a fixed list.

PyAV decodes sound and frames. OpenCV is about as fast as PyAV, but does not report truncated streams. OpenCV also
decodes a cover picture as a video, and opens playlists and addresses. Here OpenCV only resizes the frames.

Python opens a file, and FFmpeg receives its bytes. FFmpeg therefore does not interpret the name as a protocol
(`concat:`), a pattern (`%03d`) or an address. A whitelist without protocols prevents demuxers from opening other
files.
"""

from aadml.feature_extraction.media.inputs import Frames, Pictures, Sound, Text

__all__ = ["Frames", "Pictures", "Sound", "Text"]
