"""Clips of a data set before extraction, their report, and the manifest that lists them."""

import csv
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol

from aadml.data.splitting.division import connected
from aadml.data.splitting.folds import first_five
from aadml.feature_extraction.feature_file.checks import check_unique
from aadml.feature_extraction.ground.atomic import atomic_path
from aadml.feature_extraction.ground.contracts import Condition
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import file_digest
from aadml.feature_extraction.ground.media_suffixes import MEDIA_SUFFIXES
from aadml.feature_extraction.manifest import LABELS_SEPARATOR, SPLITS


@dataclass(frozen=True)
class ListedClip:
    """One clip of a data set, before extraction: its media files, labels, split and other columns.

    Args:
        id: name, unique in the listing.
        media: the media file; the sound file if the picture is in another file.
        labels: classes of the clip: none, one or several.
        split: `train`, `valid` or `test`; empty before a division.
        source: text that is equal for clips of the same recording, such as a content hash or the name of a video;
            empty if unknown. Clips that share a picture also have equal sources.
        columns: name of another column of the manifest -> cell; all clips of a listing have the same columns.
        visual: the file of the picture; None if `media` contains the picture.
    """

    id: str
    media: Path
    labels: tuple[str, ...]
    split: str
    source: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    visual: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """Media file, or the files of sound and picture."""
        return (self.media,) if self.visual is None else (self.media, self.visual)


@dataclass(frozen=True)
class Listing:
    """The clips of a data set.

    Args:
        entries: the clips, in order.
        notes: notes on the listing, one sentence each.
        hashes: SHA-256 of the files that define the listing.
        absent: names of videos of the data set that have neither a file nor an entry.
    """

    entries: tuple[ListedClip, ...]
    notes: tuple[str, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()

    def missing(self) -> list[ListedClip]:
        """Return the entries with at least one missing media file."""
        return [entry for entry in self.entries if not all(file.is_file() for file in entry.files)]

    def repeated(self) -> dict[str, list[ListedClip]]:
        """Return the entries by recording, for recordings with more than one entry."""
        groups: dict[str, list[ListedClip]] = defaultdict(list)
        for entry in self.entries:
            if entry.source:
                groups[entry.source].append(entry)
        return {source: entries for source, entries in groups.items() if len(entries) > 1}

    def shared(self) -> dict[str, list[str]]:
        """Return, for each pair of splits such as "train-test", the recordings that are in both splits."""
        splits = {source: {entry.split for entry in entries} for source, entries in self.repeated().items()}
        return {
            "-".join(pair): [source for source in splits if splits[source] >= set(pair)]
            for pair in combinations(SPLITS, 2)
        }

    def report(self) -> list[str]:
        """Return lines of text on clips, missing files, repeated and shared recordings, and hashes of the inputs."""
        splits = Counter(entry.split for entry in self.entries)
        counts = ", ".join(f"{splits[split]} {split}" for split in SPLITS)
        classes = {label for entry in self.entries for label in entry.labels}
        lines = [f"{len(self.entries)} clips, {f'{len(classes)} classes' if classes else 'no labels'} ({counts})"]
        lines += list(self.notes)
        missing = self.missing()
        lines.append(f"missing media files: {len(missing)}{_some([entry.media.name for entry in missing])}")
        repeated = self.repeated()
        lines.append(f"recordings in more than one row: {len(repeated)}{_some(_files(repeated.values()))}")
        for pair, sources in self.shared().items():
            shared = _files(repeated[source] for source in sources)
            lines.append(f"recordings shared by {pair}: {len(sources)}{_some(shared)}")
        lines += [f"sha256 {digest}  {name}" for name, digest in self.hashes.items()]
        return lines


def _holds_clips(listing: Listing) -> bool:
    """Return whether the entries are a tuple of clips with fields of the annotated types."""
    return isinstance(listing.entries, tuple) and all(
        isinstance(entry, ListedClip)
        and all(isinstance(text, str) for text in (entry.id, entry.split, entry.source))
        and all(isinstance(file, Path) for file in entry.files)
        and isinstance(entry.labels, tuple)
        and all(isinstance(label, str) for label in entry.labels)
        for entry in listing.entries
    )


class ListingFunction(Protocol):
    """Function that lists the media of a data set; its keyword arguments are options of `aadml manifest`."""

    def __call__(
        self, folder: Path, /, **options: Any
    ) -> Annotated[
        Listing,
        Condition("Listing(tuple of ListedClip(id: str, media: Path, labels: tuple, split: str))", _holds_clips),
    ]:
        """List the clips of a folder."""
        ...


def write_manifest(path: str | os.PathLike[str], entries: Iterable[ListedClip]) -> None:
    """Write clips as a manifest: `id,media,label,split` and the columns of the clips.

    Paths of media below the folder of the manifest are relative to the folder. If the picture is in another
    file, the columns are `audio,visual` instead of `media`. For clips with several labels, the column is `labels`
    instead of `label`. Without labels, both columns are absent.

    Raises:
        InputError: no entries, a repeated id, a label that contains the separator of labels, or a path that cannot be
            written.
    """
    rows = list(entries)
    if not rows:
        raise InputError(f"{path}: there are no clips to list; pass at least one clip with its media file")
    check_unique([entry.id for entry in rows], f"{path}: the column 'id'")
    folder = Path(path).absolute().parent
    files = ["media"] if rows[0].visual is None else ["audio", "visual"]
    labels = _label_column(rows, str(path))
    lines = [["id", *files, *labels, "split", *rows[0].columns]]
    for entry in rows:
        cells = [LABELS_SEPARATOR.join(entry.labels)] * len(labels)
        media = (_near(file, folder) for file in entry.files)
        lines.append([entry.id, *media, *cells, entry.split, *entry.columns.values()])
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", errors="surrogateescape") as file:
        minimal, full = (csv.writer(file, lineterminator="\n", quoting=q) for q in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        for line in lines:  # before Python 3.13, minimal quoting leaves out cells with "\r"
            (full if "\r" in "".join(map(str, line)) else minimal).writerow(line)


def _label_column(rows: Sequence[ListedClip], place: str) -> list[str]:
    """Return a list with the name of the label column, or an empty list if there are no labels."""
    most = max(len(entry.labels) for entry in rows)
    if most < 2:
        return ["label"] * most
    wrong = [label for entry in rows for label in entry.labels if LABELS_SEPARATOR in label]
    if wrong:
        raise InputError(
            f"{place}: the label '{wrong[0]}' contains '{LABELS_SEPARATOR}', which separates labels; rename the label"
        )
    return ["labels"]


def _near(file: Path, folder: Path) -> str:
    media = os.fspath(file.absolute())
    near = os.path.relpath(media, folder)
    return media if near.startswith("..") else near


def media_files(folder: Path, suffixes: Collection[str] = MEDIA_SUFFIXES) -> list[Path]:
    """Return the files with one of `suffixes` below a folder, sorted, without hidden files.

    Raises:
        OSError: a folder cannot be read.
    """
    return sorted(file for file in _walk(folder) if file.suffix.lower() in suffixes and not _is_link(file))


def linked_media(folder: Path) -> list[Path]:
    """Return the media files in folders that are linked below a folder, sorted by folder, without hidden files.

    Links in linked folders are followed. A folder is read by its first link only. Folders that cannot be read are left
    out, and so are links to `folder` and to its parents.
    """
    waiting, read, files = [folder], set(folder.resolve().parents), []
    for place in waiting:
        if (target := place.resolve()) not in read:
            read.add(target)
            entries = sorted(_walk(place, onerror=None))
            waiting += (entry for entry in entries if _is_link(entry))
            files += [] if place == folder else entries
    return [file for file in files if file.suffix.lower() in MEDIA_SUFFIXES and not _is_link(file)]


def left_aside(folder: Path, suffixes: Collection[str] = MEDIA_SUFFIXES) -> list[str]:
    """Return notes on entries below a folder that are not listed: links to folders, and files of other suffixes.

    Raises:
        OSError: a folder cannot be read.
    """
    paths = sorted(_walk(folder))
    links = [str(path.relative_to(folder)) for path in paths if _is_link(path)]
    others = Counter(path.suffix.lower() or "none" for path in paths if not _is_link(path))
    endings = [f"{ending} {count}" for ending, count in others.most_common() if ending not in suffixes]
    lines = [f"links to folders are not followed{_some(links)}"] if links else []
    return lines + ([f"files with other endings were left out{_some(endings)}"] if endings else [])


def with_sources(entries: Sequence[ListedClip]) -> tuple[ListedClip, ...]:
    """Return clips with equal sources for clips that share a sound or a picture, directly or through other clips.

    Args:
        entries: one or more clips, all of one file or all of two files; files with equal bytes are the same.

    Raises:
        OSError: a file cannot be read.
    """
    equal = equal_files(dict.fromkeys(file for entry in entries for file in entry.files))
    columns = [
        [equal.get(file, str(file)) for file in files] for files in zip(*(e.files for e in entries), strict=True)
    ]
    groups = connected(columns)
    counts, first = Counter(groups), dict(zip(groups[::-1], columns[0][::-1], strict=True))
    sources = (first[group] if counts[group] > 1 else "" for group in groups)
    return tuple(replace(entry, source=source) for entry, source in zip(entries, sources, strict=True))


def equal_files(files: Iterable[Path]) -> dict[Path, str]:
    """Return the files that have the same bytes as another file, each with its SHA-256.

    Only files of equal size are read; missing files are ignored.

    Raises:
        OSError: a file cannot be read.
    """
    by_size: dict[int, list[Path]] = defaultdict(list)
    for file in files:
        if file.is_file():
            by_size[file.stat().st_size].append(file)
    hashes = {file: file_digest(file) for group in by_size.values() if len(group) > 1 for file in group}
    counts = Counter(hashes.values())
    return {file: digest for file, digest in hashes.items() if counts[digest] > 1}


def utf8(name: str) -> str:
    """Return a file name as UTF-8 text, with each invalid byte as a backslash, x and two hexadecimal digits."""
    return os.fsencode(name).decode("utf-8", errors="backslashreplace")


def _raise(error: OSError) -> NoReturn:
    raise error


def _walk(folder: Path, onerror: Callable[[OSError], None] | None = _raise) -> Iterator[Path]:
    """Yield the entries below a folder that are not hidden: files, and links to folders."""
    for parent, folders, names in os.walk(folder, onerror=onerror):
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = (name for name in folders if _is_link(Path(parent) / name))
        yield from (Path(parent) / name for name in (*names, *links) if not name.startswith("."))


def _is_link(path: Path) -> bool:
    return path.is_symlink() and os.path.isdir(path)  # noqa: PTH112 - the target may be unreadable


def _files(groups: Iterable[Sequence[ListedClip]]) -> list[str]:
    """Return at most three different names of each group, joined by " = "; the name of a pair is SOUND+PICTURE."""
    names = (dict.fromkeys("+".join(file.name for file in clip.files) for clip in group) for group in groups)
    return [" = ".join(list(of_group)[:3]) for of_group in names]


def _some(names: list[str]) -> str:
    if not names:
        return ""
    return f" ({first_five([utf8(name) for name in names])})"
