"""Sound and frames out of media files, with one reason from a fixed list whenever they cannot be had.

Both come from PyAV. OpenCV reads frames no faster (within a tenth) and hides what matters here: it cannot tell a stream
that ended from one that broke off, takes a cover picture for a video, and opens playlists and addresses. It resizes the
kept frames.

A file is opened by Python and handed over as bytes, so its name means nothing to FFmpeg (no `concat:`, no `%03d`, no
address), and a protocol whitelist that names no protocol keeps any demuxer from opening another file.
"""

from aadml.feature_extraction.media.decoding import decode, decoder_versions
from aadml.feature_extraction.media.inputs import REASONS, Clip, Frames, Limits, MediaFailure, Pictures, Sound, Text

__all__ = [
    "REASONS",
    "Clip",
    "Frames",
    "Limits",
    "MediaFailure",
    "Pictures",
    "Sound",
    "Text",
    "decode",
    "decoder_versions",
]
