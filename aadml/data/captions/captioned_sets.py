"""Captioned sound as splits: AudioCaps and Clotho folders, packed HDF5 of Mei et al., manifests with captions.

Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from pathlib import Path

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.data.captions.cleaning import CLEANINGS
from aadml.data.captions.tables import CaptionedFile, is_caption_table, read_caption_table
from aadml.data.sources.texts import Captions
from aadml.data.sources.waveforms import PackedWaveforms, Waveforms, unreadable
from aadml.data.splitting.folds import first_five
from aadml.feature_extraction.foreign.hdf5 import hdf5_keys, open_hdf5, require_keys
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.manifest import SPLITS, caption_columns, read_manifest

_NAMES = {
    "train": ("train", "development"),
    "valid": ("val", "valid", "validation"),
    "test": ("test", "evaluation"),
}
_PACKED = {"audio_name", "caption", "waveform"}
"""Keys of a packed file."""


@dataclass(frozen=True)
class CaptionedPart:
    """One split before its sound is checked.

    Attributes:
        files: names, captions and paths of the sounds.
        packed: the HDF5 file that contains the sound; "" if each clip has its own file.
    """

    files: Sequence[CaptionedFile]
    packed: str = ""


def captioned_splits(
    path: str | os.PathLike[str], *, cleaning: str = "mei", captions: int = 5, complete: bool = True
) -> Splits:
    """Read captioned sound: one row for each pair of a clip and a caption, labeled with the number of the clip.

    Args:
        path: an AudioCaps or Clotho folder, a folder of packed HDF5 files (`train/train.h5`, ...), or a manifest with
            columns `caption` or `caption_1`, `caption_2`, ... Rows of a manifest with the same split, sound file and
            segment are one clip.
        cleaning: a key of CLEANINGS.
        captions: largest number of captions of a clip; further captions are left out.
        complete: whether every split must have captions; if False, absent splits are empty.

    Returns:
        The splits, with `audio` (Waveforms or PackedWaveforms) and `text` (Captions). The notes report clips with
        missing or truncated sound, captions without a word after cleaning, captions beyond the largest number, and
        sound files in two splits.

    Raises:
        InputError: a path that cannot be read as captioned sound, a split without captions or without usable sound, or
            an unknown cleaning.
    """
    clean = lookup(CLEANINGS, cleaning, "cleaning")
    place = Path(path)
    parts = _parts(place)
    absent = [name for name in SPLITS if name not in parts]
    if absent and (complete or not parts):
        raise InputError(
            f"{place} has no captions of the split {absent[0]} (splits with captions: {', '.join(parts) or 'none'}); "
            "add captioned clips to this split"
        )
    notes: list[str] = []
    clips = {name: _clips(part, name, clean, captions, str(place), notes) for name, part in parts.items()}
    empty = next(iter(clips.values())).select(torch.empty(0, dtype=torch.int64))
    train, valid, test = (clips.get(name, empty) for name in SPLITS)
    parts = dict.fromkeys(absent, CaptionedPart(())) | parts
    return Splits(train, valid, test, name=str(place), notes=(*notes, *_shared_files(parts)))


def _shared_files(parts: Mapping[str, CaptionedPart]) -> Iterator[str]:
    """Yield a note for each pair of splits that share sound files."""
    paths = {
        name: {os.path.realpath(file.path): file.path for file in parts[name].files if file.path}
        for name in SPLITS
        if name in parts
    }
    for split, other in combinations(paths, 2):
        if shared := [path for real, path in paths[split].items() if real in paths[other]]:
            yield f"{split} and {other} share sound files: {len(shared)} ({first_five(shared)})"


def is_captioned(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a folder of caption tables or packed files, or a CSV file with "caption" in line 1.

    Tables without the columns of a caption table are ignored.

    Raises:
        InputError: a folder has several caption tables of a split.
    """
    place = Path(path)
    if place.suffix == ".csv" and place.is_file():
        with place.open(encoding="utf-8-sig", errors="replace") as file:
            return "caption" in file.readline()
    if not place.is_dir():
        return False
    return any(is_caption_table(table) for _, table in split_tables(place)) or any(_packs(place))


def _parts(place: Path) -> dict[str, CaptionedPart]:
    if place.is_file() and place.suffix == ".csv":
        return _of_manifest(place)
    if not place.is_dir():
        raise InputError(
            f"{place} is not an existing folder or manifest; pass a folder or a manifest of captioned sound"
        )
    packs = dict(_packs(place))
    if packs:
        return {name: _of_pack(pack) for name, pack in packs.items()}
    return {name: _of_table(place, table, name) for name, table in split_tables(place)}


def split_tables(place: Path) -> Iterator[tuple[str, Path]]:
    """Yield each split and its table, in the folder `place` or its subfolder `csv_files` or `dataset`.

    The table is the first one with the columns of a caption table, or else the first one with the name of the split.
    """
    for part, names in _NAMES.items():
        form = re.compile(rf"(.*[_-])?({'|'.join(names)})\.csv", re.IGNORECASE | re.DOTALL)
        folders = (place, place / "csv_files", place / "dataset")
        named = [file for folder in folders for file in sorted(folder.glob("*")) if form.fullmatch(file.name)]
        captioned = [file for file in named if is_caption_table(file)]
        tables = [file for file in captioned if file.parent == captioned[0].parent]
        if len(tables) > 1:
            shown = ", ".join(table.name for table in tables)
            raise InputError(f"{tables[0].parent} has several tables of the split {part} ({shown}); keep one table")
        yield from [(part, table) for table in (*tables, *named)[:1]]


def _packs(place: Path) -> Iterator[tuple[str, Path]]:
    """Yield each split and its packed file (Mei et al.): `<split>/<split>.h5` or `<split>.h5`, also in `hdf5s`.

    HDF5 files without a key of packed files, such as feature files, are ignored.
    """
    for part, names in _NAMES.items():
        folders = (place / "hdf5s", place)
        candidates = [f / inner for f in folders for n in names for inner in (f"{n}/{n}.h5", f"{n}.h5")]
        packed = (file for file in candidates if file.is_file() and not _PACKED.isdisjoint(hdf5_keys(file)))
        yield from ((part, file) for file in islice(packed, 1))


def _of_table(place: Path, table: Path, part: str) -> CaptionedPart:
    files = read_caption_table(table)
    bases = (place / "waveforms", place / "wavs", place / "audio", place)
    paths: dict[str, str] = {}
    for folder in (base / name for base in bases for name in (*_NAMES[part], "")):
        for entry in folder.iterdir() if folder.is_dir() else ():
            paths.setdefault(entry.name, str(entry))
    paths = {name.strip(): path for name, path in paths.items()} | paths  # cells of a table are stripped
    places = [next((paths[name] for name in (file.name, *file.aliases) if name in paths), "") for file in files]
    return CaptionedPart([replace(file, path=path) for file, path in zip(files, places, strict=True)])


def _of_manifest(place: Path) -> dict[str, CaptionedPart]:
    manifest = read_manifest(place)
    columns = caption_columns(manifest.rows[0].columns)
    if not columns:
        raise InputError(f"{place} has no captions; add a column caption, or caption_1, caption_2, ...")
    parts: dict[str, dict[object, CaptionedFile]] = {}
    for row in manifest.rows:
        written = tuple(row.columns[name] for name in columns if row.columns[name].strip())
        if not written:
            raise InputError(f"{place}: clip '{row.id}' has no caption; add a caption, or remove the clip")
        file = CaptionedFile(row.id, written, path=row.media["audio"], segment=row.segment)
        key = (os.path.realpath(file.path), file.segment) if file.path else row.id
        clips = parts.setdefault(row.split, {})
        if (clip := clips.setdefault(key, file)) is not file:
            clips[key] = replace(clip, captions=(*clip.captions, *written))
    return {name: CaptionedPart(list(clips.values())) for name, clips in parts.items()}


def _of_pack(path: Path) -> CaptionedPart:
    try:
        with open_hdf5(path) as file:
            require_keys(path, sorted(_PACKED), list(file))
            names = file["audio_name"].asstr()[()].tolist()
            written = file["caption"].asstr()[()]
            rows = written.reshape(len(written), -1).tolist()
            if not len(names) == len(rows) == len(file["waveform"]):
                raise InputError(
                    f"{path} contains {len(names)} names in 'audio_name', {len(rows)} rows in 'caption' and "
                    f"{len(file['waveform'])} rows in 'waveform'; store one of each per clip"
                )
    except (TypeError, AttributeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read as captioned sound ({' '.join(str(error).split())}); store UTF-8 text in "
            "'audio_name' and 'caption', and a row per clip in 'waveform'"
        ) from error
    return CaptionedPart([CaptionedFile(name, tuple(row)) for name, row in zip(names, rows, strict=True)], str(path))


def _clips(
    part: CaptionedPart, name: str, clean: Callable[[str], str], captions: int, place: str, notes: list[str]
) -> Clips:
    """Return the usable clips of one split, and append notes on omitted clips and captions."""
    cleaned = [[(text, clean(text)) for text in file.captions] for file in part.files]
    spoken = [[words for _, words in texts if words] for texts in cleaned]
    missing = _without_sound(part)
    usable = [i for i, file in enumerate(part.files) if file.name not in missing and spoken[i]]
    if not usable:
        raise InputError(
            f"{place}: none of the {len(part.files)} sound files of the split {name} can be read: {_named(missing)}; "
            "restore these files"
            if len(missing) == len(part.files)
            else f"{place}: no clip of the split {name} has sound and words; add clips with a sound file and a caption"
        )
    pairs = [(clip, row, n) for clip, row in enumerate(usable) for n in range(len(spoken[row][:captions]))]
    clip_of = torch.tensor([clip for clip, _, _ in pairs], dtype=torch.int64)
    if part.packed:
        sound: Waveforms | PackedWaveforms = PackedWaveforms(part.packed, torch.tensor([row for _, row, _ in pairs]))
    else:
        paths, segments = zip(*((part.files[row].path, part.files[row].segment) for row in usable), strict=True)
        sound = Waveforms(paths, clip_of, segments=segments)
    names = tuple(part.files[row].name for row in usable)
    ids = tuple(f"{names[clip]}#{n + 1}" for clip, _, n in pairs)
    texts = Captions(tuple(spoken[row][n] for _, row, n in pairs))
    clips = Clips({"audio": sound, "text": texts}, clip_of, ids, names)
    wordless = {
        f"{file.name}#{n}": f"'{written}'"
        for file, texts in zip(part.files, cleaned, strict=True)
        for n, (written, words) in enumerate(texts, start=1)
        if not words
    }
    beyond = sum(len(spoken[row][captions:]) for row in usable)
    remarks = {
        f"{len(missing)} of {len(part.files)} clips have no usable sound: {_named(missing)}": missing,
        f"captions without a word were left out: {_named(wordless)}": wordless,
        f"{beyond} captions beyond the first {captions} of a clip were left out (method.captions)": beyond,
    }
    notes += [f"{name}: {note}" for note, applies in remarks.items() if applies]
    return clips


def _without_sound(part: CaptionedPart) -> dict[str, str]:
    """Return the clips without usable sound and the reasons; empty for a packed file."""
    if part.packed:
        return {}
    wrong = unreadable([file.path for file in part.files if file.path]) | {"": "missing: the file does not exist"}
    return {file.name: wrong[file.path] for file in part.files if file.path in wrong}


def _named(reasons: Mapping[str, str]) -> str:
    return first_five([f"{name} ({reason})" for name, reason in reasons.items()])
