"""VEGAS from its videos: one folder per class, and optionally lists of ids for its folds."""

from dataclasses import replace
from pathlib import Path

from aadml.data.manifests.folder import folder
from aadml.data.manifests.listing import Listing
from aadml.data.splitting.division import divide
from aadml.data.splitting.folds import read_folds
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import file_digest

_SHARES = (0.8, 0.0, 0.2)


def vegas(source: Path, *, folds: Path | None = None, seed: int = 0) -> Listing:
    """List VEGAS (Zhou et al., CVPR 2018): by default, four fifths train and one fifth test.

    The layout is unverified: no page documents the folders or the folds of the archive.

    Reference: Zhou et al., Visual to sound: generating natural sound for videos in the wild, CVPR 2018, https://arxiv.org/abs/1712.01393

    Args:
        source: the folder with one folder per class; the names of the videos, at any depth, are the ids.
        folds: VEGAS: folder of text files of ids, one file per fold; the last fold is for test. By default, a fifth
            of each class is drawn.
        seed: seed of the division if there are no folds.

    Raises:
        InputError: the folder is invalid (see `folder`) or contains no media in folders, or the folds cannot be read or
            list none of the videos.
    """
    listing = folder(source)
    clips = [clip for clip in listing.entries if clip.labels]
    if not clips:
        raise InputError(f"{source} contains no media in folders; make one folder per class")
    without_video: list[str] = []
    if folds is None:
        groups = [clip.source or clip.id for clip in clips]
        drawn = divide([clip.labels for clip in clips], groups, _SHARES, seed)
        splits = {clip.id: split for clip, split in zip(clips, drawn, strict=True)}
        notes, hashes = [f"a fifth of each class was drawn for test (seed {seed})"], {}
    else:
        splits, notes, note = read_folds(folds)
        videos = {clip.id for clip in clips}
        without_video = [name for name in splits if name not in videos]
        unlisted = len(videos - splits.keys())
        if unlisted == len(clips):
            raise InputError(
                f"{folds}: the folds list none of the {len(clips)} videos, such as '{clips[0].id}'; pass the folds of "
                "these videos"
            )
        notes += [note, f"{unlisted} videos are in no fold and were left out"]
        notes.append(f"{len(without_video)} ids of the folds have no video")
        hashes = {file.name: file_digest(file) for file in sorted(folds.iterdir()) if file.is_file()}
    entries = tuple(replace(clip, split=splits[clip.id]) for clip in clips if clip.id in splits)
    return Listing(entries, (*notes, *listing.notes), hashes, tuple(without_video))
