"""VEGAS from its videos: one folder per class, and optionally lists of ids for its folds."""

from pathlib import Path

from aadml.data.layouts.arrays_on_disk import file_hash
from aadml.data.manifests.folder import unique_names
from aadml.data.manifests.listing import ListedClip, Listing, equal_files, left_aside, media_files, utf8
from aadml.data.splitting.division import divide
from aadml.data.splitting.folds import last_fold, read_folds
from aadml.feature_extraction.ground.errors import InputError

_SHARES = (0.8, 0.0, 0.2)


def vegas(source: Path, *, folds: Path | None = None, seed: int = 0) -> Listing:
    """List VEGAS (Zhou et al., Visual to Sound, CVPR 2018): four fifths train, one fifth test.

    Args:
        source: the folder with one folder per class; videos at any depth, their names are the ids.
        folds: a folder of text files of ids, one file per fold; the last is for test. By default, a fifth of each class
            is drawn.
        seed: seed of the division if there are no folds.

    Raises:
        InputError: no such folder, no media, or folds that list none of the videos.
    """
    if not source.is_dir():
        raise InputError(f"{source}: is not a folder; pass the folder of VEGAS")
    files = [file for file in media_files(source) if len(file.relative_to(source).parts) > 1]
    if not files:
        raise InputError(f"{source}: holds no media in folders; one folder per class is expected")
    labels = [file.relative_to(source).parts[0] for file in files]
    names, equal = unique_names(files, source), equal_files(files)
    without_video: list[str] = []
    if folds is None:
        groups = [equal.get(file, str(file)) for file in files]
        splits = dict(zip(names, divide([(label,) for label in labels], groups, _SHARES, seed), strict=True))
        notes, hashes = [f"a fifth of each class was drawn for test (seed {seed})"], {}
    else:
        fold_of, notes = read_folds(folds)
        test, note = last_fold(fold_of)
        splits = {name: "test" if fold == test else "train" for name, fold in fold_of.items()}
        videos = set(names)
        unlisted, without_video = [n for n in names if n not in splits], [n for n in splits if n not in videos]
        notes += [note, f"{len(unlisted)} videos are in no fold and were left out"]
        notes.append(f"{len(without_video)} ids of the folds have no video")
        hashes = {file.name: file_hash(file) for file in sorted(folds.iterdir()) if file.is_file()}
        if len(unlisted) == len(names):
            raise InputError(
                f"{folds}: the folds list none of the {len(names)} videos, such as '{names[0]}'; pass their folds"
            )
    entries = tuple(
        ListedClip(id=name, media=file, labels=(utf8(label),), split=splits[name], source=equal.get(file, ""))
        for name, file, label in zip(names, files, labels, strict=True)
        if name in splits
    )
    return Listing(entries, (*notes, *left_aside(source)), hashes, tuple(without_video))
