"""Media files by name: templates of file names, and a search of a folder at any depth."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath

from aadml.data.manifests.listing import linked_media, media_files
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.media_suffixes import MEDIA_SUFFIXES
from aadml.feature_extraction.ground.registry import suggestion

_FIELD = re.compile(r"\{([^{}:]+)(?::(0[1-9])?(d))?\}")


def media_name(template: str, cells: Mapping[str, str]) -> str:
    """Return a file name from the cells of a row.

    Args:
        template: text with fields. "{NAME}" is replaced by the cell of the column NAME, "{NAME:d}" by the integer
            part of the cell, and "{NAME:06d}" by the integer part with at least six digits.
        cells: cells by name of their column.

    Raises:
        InputError: braces of another form, an unknown column, or a cell for "{NAME:d}" or "{NAME:06d}" that is not
            a number.
    """

    def written(field: re.Match[str]) -> str:
        name, zeros, number = field.groups()
        if name not in cells:
            raise InputError(f"template {template}: there is no column '{name}'; {suggestion(name, cells)}")
        if not number:
            return cells[name]
        try:
            return f"{int(float(cells[name])):{zeros or ''}d}"
        except (ValueError, OverflowError) as error:
            raise InputError(
                f"template {template}: '{cells[name][:80]}' in column '{name}' is not a number; correct the cell, or "
                f"write {{{name}}} in the template"
            ) from error

    if {"{", "}"} & set(_FIELD.sub("", template)):
        raise InputError(
            f"--media-name '{template}' has a brace outside of a field; write, for example, {{id}}_{{start:06d}}.mp4"
        )
    return _FIELD.sub(written, template)


def template_fields(template: str) -> set[str]:
    """Return the columns in a template of `media_name`."""
    return {name for name, *_ in _FIELD.findall(template)}


def media_index(media: Path | None, default: Path) -> "MediaIndex":
    """Return the index of the folder `media`, or of the folder `default` if `media` is None.

    Raises:
        InputError: `media` is not a folder.
    """
    if media is not None and not media.is_dir():
        raise InputError(f"{media} is not a folder; pass --media with the folder of the media files")
    return MediaIndex(default if media is None else media)


class MediaIndex:
    """Media files below a folder, by name; the folder is read at the first search.

    Linked folders are read when a search finds no file in the folder.

    Args:
        folder: the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def _files(self) -> Mapping[str, list[Path]]:
        return _by_stem(media_files(self.folder) if self.folder.is_dir() else ())

    @cached_property
    def _linked(self) -> Mapping[str, list[Path]]:
        return _by_stem(linked_media(self.folder))

    def find(self, *names: str, outside: Collection[str] = ()) -> Path:
        """Return the first existing file with one of the names; without such a file, a path for the first name.

        Cells of tables are stripped, so a file whose name begins or ends with spaces is found by its stripped name.

        Args:
            names: names of files or last parts of paths, each with or without the suffix of the file. The path for
                a first name without a media suffix ends in ".mp4".
            outside: words; files below a folder whose name is a word or ends in "_" and a word are left out.

        Raises:
            InputError: several files match one name.
        """
        first = names[0]
        default = self.folder / (first if PurePosixPath(first).suffix.lower() in MEDIA_SUFFIXES else f"{first}.mp4")
        return self._first(self._files, names, outside) or self._first(self._linked, names, outside) or default

    def _first(self, by_stem: Mapping[str, list[Path]], names: Iterable[str], outside: Collection[str]) -> Path | None:
        for name in names:
            named = [file for file in by_stem.get(_stem(name).strip(), ()) if self._has(file, name, outside)]
            files = [file for file in named if file.stem == _stem(name)] or named
            if others := [file for file in files[1:] if file.resolve() != files[0].resolve()]:
                raise InputError(
                    f"{self.folder}: {1 + len(others)} files have the name '{name}' ({files[0]}, {others[0]}); "
                    "rename the other files, or pass --media with a folder that contains only one file of the name"
                )
            if files:
                return files[0]
        return None

    def _has(self, file: Path, name: str, outside: Collection[str]) -> bool:
        path = file.relative_to(self.folder)
        if any(folder.rpartition("_")[2] in outside for folder in path.parts[:-1]):
            return False
        folder = f"/{path.as_posix()}".removesuffix(path.name)
        forms = (path.name, path.stem, f"{path.stem.strip()}{path.suffix}", path.stem.strip())
        return any(f"{folder}{form}".endswith(f"/{name}") for form in forms)


def _by_stem(files: Iterable[Path]) -> Mapping[str, list[Path]]:
    by_stem: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        by_stem[file.stem.strip()].append(file)
    return by_stem


def _stem(name: str) -> str:
    path = PurePosixPath(name)
    return path.stem if path.suffix.lower() in MEDIA_SUFFIXES else path.name
