"""Data sets with published tables of their clips.

The files are expected as common downloaders write them: one file per clip, already cut. The columns `video_start` and
`video_end` then contain the times of a clip in its video.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path

from aadml.data.manifests.listing import ListedClip, Listing
from aadml.data.manifests.media_names import MediaIndex, media_index, media_name
from aadml.data.manifests.table import labels_of, read_table
from aadml.data.splitting.folds import first_five
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import file_digest
from aadml.feature_extraction.ground.json_values import nested, parse_object, texts
from aadml.feature_extraction.manifest import ALIASES, split_labels

Cells = Mapping[str, str]
"""Cells of a row by column."""

_CAPTION = "caption"


@dataclass(frozen=True)
class PublishedTables:
    """Layout of the tables and files of a data set.

    Args:
        page: page or loader that documents the layout.
        tables: pattern of a table's name -> split of its clips; "" for a table with a column `split`, or for a data set
            without splits. A `.json` table contains lists of videos by label.
        columns: names of the columns of tables without a header, or column of the header -> name. `listing` uses the
            names `video`, `start`, `end` (seconds), `label`, `split` and `caption`, and templates use any name.
        names: templates of file names of a clip, without ending (see `media_name`); the first existing file is used.
            `{table}` is the last word of the table's name; a folder of another table is then left out if that
            table has the name of the file, or was not read.
        id: template of the id of a clip.
        comment: beginning of lines that are left out.
        separator: separator of several labels in a cell; empty if clips have one label.
        seconds: length of the clips of a table without `end`.
        classes: classes that are kept; empty for all classes.
        class_names: table of the names of labels, its column of labels, and its column of names; None for no table.
    """

    page: str
    tables: Mapping[str, str]
    columns: Sequence[str] | Mapping[str, str]
    names: Sequence[str]
    id: str = "{video}"
    comment: str = ""
    separator: str = ""
    seconds: float = 0
    classes: frozenset[str] = frozenset()
    class_names: tuple[str, str, str] | None = None

    def listing(self, source: Path, *, media: Path | None = None, whole_recordings: bool = False) -> Listing:
        """List the clips of the tables.

        Args:
            source: the folder of the tables, or of their folder `dataset`; or one table.
            media: the folder that contains the media at any depth; by default `source`, or the folder of one table.
            whole_recordings: the files are whole recordings, named by video. The columns `start` and `end` then cut
                the clips.

        Raises:
            InputError: no table, a table that cannot be read or has another form, `media` that is not a folder, two
                files with the same name, or `whole_recordings` for videos without times.
        """
        tables = self.tables_in(source)
        if not tables:
            raise InputError(
                f"{source} contains none of the tables {', '.join(self.tables)}; pass the tables of {self.page}"
            )
        folder = source.parent if source.is_file() else source
        index = media_index(media, folder)
        rows = list(chain.from_iterable(self._rows(table, split) for table, split in tables.items()))
        chosen = [row for row in rows if not self.classes or row["label"] in self.classes]
        untimed = [row["video"] for row in chosen if not row.get("start")]
        if whole_recordings and untimed:
            raise InputError(
                f"{source}: --whole-recordings needs times, but the video '{untimed[0]}' has none; omit the flag"
            )
        names, clips = self._label_names(folder), _clips(chosen)
        most = max((len(captions) for _, captions in clips), default=0)
        words = self._words_of_files(rows)
        entries = []
        for row, captions in clips:
            clip = self._clip(row, index, words.get(row["video"], set()), whole=whole_recordings)
            labels = tuple(names.get(label, label) for label in clip.labels)
            entries.append(replace(clip, labels=labels, columns={**clip.columns, **_numbered(captions, most)}))
        notes = [f"{len(rows) - len(chosen)} clips of other classes were left out"] if len(chosen) < len(rows) else []
        return Listing(tuple(entries), tuple(notes), {table.name: file_digest(table) for table in tables})

    def tables_in(self, source: Path) -> dict[Path, str]:
        """Return the split of each table in a folder, or in its subfolder `dataset` if the folder has no tables.

        A file as `source` is a table, whatever its name.
        """
        if source.is_file():
            return {source: next((split for form, split in self.tables.items() if fnmatch(source.name, form)), "")}
        tables: dict[Path, str] = {}
        for folder in (source, source / "dataset"):
            files = sorted(folder.iterdir()) if folder.is_dir() and not tables else []
            tables |= {f: split for form, split in self.tables.items() for f in files if fnmatch(f.name, form)}
        return tables

    def recognizes(self, file: Path) -> bool:
        """Return whether a file has the name of a table and, for tables with a header, the columns of a table."""
        if not any(fnmatch(file.name, form) for form in self.tables):
            return False
        if not isinstance(self.columns, Mapping):
            return True
        with file.open("rb") as table:
            header = table.readline(10_000).decode("utf-8-sig", errors="replace")
        return set(self.columns) <= {name.strip(' "') for name in header.strip().split(",")}

    def _rows(self, table: Path, split: str) -> list[Cells]:
        """Return the rows of a table, with `split` and `table` (the last word of the table's name)."""
        rows: Sequence[Cells]
        if table.suffix == ".json":
            videos = nested(parse_object(table.read_bytes(), table), "videos")
            rows = [{"video": video, "label": label} for label, names in videos.items() for video in texts(names)]
        elif isinstance(self.columns, Mapping):
            header, lines = read_table(table)
            if lacking := [name for name in self.columns if name not in header]:
                raise InputError(
                    f"{table} lacks the column '{lacking[0]}' (columns: {first_five(header)}); pass a table of "
                    f"{self.page}"
                )
            rows = [row | {new: row[old] for old, new in self.columns.items()} for row in lines.values()]
        else:
            rows = list(read_table(table, self.columns, self.comment)[1].values())
        word = _word(table.name)
        splits = [split or row.get("split", "").lower() for row in rows]
        return [
            {**row, "split": ALIASES.get(name, name), "table": word} for row, name in zip(rows, splits, strict=True)
        ]

    def _words_of_files(self, rows: Sequence[Cells]) -> dict[str, set[str]]:
        """Return the words of tables by file name: the tables with the file, and the tables that were not read.

        The result is empty if the templates of names have no `{table}`.
        """
        if "{table}" not in "".join(self.names):
            return {}
        unread = {_word(form) for form in self.tables} - {row["table"] for row in rows}
        words = {row["video"]: set(unread) for row in rows}
        for row in rows:
            words[row["video"]].add(row["table"])
        return words

    def _clip(self, row: Cells, index: MediaIndex, words: Set[str], *, whole: bool) -> ListedClip:
        """Return a clip with labels as in the table and without captions; see `_words_of_files` for `words`."""
        start, end = row.get("start", ""), row.get("end", "")
        if start and not end and self.seconds:
            end = f"{_number(start, row) + self.seconds:g}"
        times = {"start": start, "end": end} if whole else {"video_start": start, "video_end": end}
        files, clip = ["{video}"] if whole else self.names, media_name(self.id, row)
        return ListedClip(
            id=clip,
            media=index.find(*(media_name(name, row) for name in files), outside=words - {row["table"]}),
            labels=labels_of(row.get("label", ""), self.separator),
            split=row["split"],
            source=row["video"] if start else clip,
            columns={"video": row["video"], **(times if start else {})},
        )

    def _label_names(self, folder: Path) -> Cells:
        """Return the name of each label from the table `class_names`; no names if the folder lacks the table."""
        if self.class_names is None or not (folder / self.class_names[0]).is_file():
            return {}
        file, label, name = self.class_names
        return {row[label]: row[name] for row in read_table(folder / file)[1].values()}


def _word(table: str) -> str:
    """Return the last word of the name of a table."""
    return Path(table).stem.rpartition("_")[2]


def _number(start: str, row: Cells) -> float:
    try:
        return float(start)
    except ValueError:
        raise InputError(
            f"{row['table']}: the start of {row['video']} is '{start}', which is not a number; correct the cell"
        ) from None


def _clips(rows: Sequence[Cells]) -> list[tuple[Cells, list[str]]]:
    """Return the first row and the captions of each clip.

    Rows with a caption and the same split, video and start are one clip. Every other row is a clip.
    """
    clips: dict[object, tuple[Cells, list[str]]] = {}
    for number, row in enumerate(rows):
        key = (row["split"], row["video"], row.get("start")) if _CAPTION in row else number
        captions = [text for name, text in row.items() if name.startswith(_CAPTION) and text]
        clips.setdefault(key, (row, []))[1].extend(captions)
    return list(clips.values())


def _numbered(captions: Sequence[str], count: int) -> dict[str, str]:
    """Return the captions of a clip by name of their column.

    There are no columns for `count` 0, and the column is `caption` for `count` 1. For a larger `count`, the columns
    are `caption_1` to `caption_<count>`, and columns without a caption contain empty text.
    """
    if count < 2:
        return dict.fromkeys([_CAPTION] * count, "".join(captions))
    return {f"{_CAPTION}_{n + 1}": text for n, text in enumerate([*captions, *[""] * (count - len(captions))])}


VGGSOUND = PublishedTables(
    page="https://github.com/hche11/VGGSound",
    tables={"vggsound*.csv": ""},
    columns=("video", "start", "label", "split"),
    names=("{video}_{start:06d}", "{video}"),
    id="{video}_{start:06d}",
    seconds=10,
)
"""List VGGSound (Chen et al., ICASSP 2020): vggsound.csv, files `{id}_{start:06d}.mp4`.

Columns: README of https://github.com/hche11/VGGSound. File names: its folder `example_audio`.

Reference: Chen et al., VGGSound: a large-scale audio-visual dataset, ICASSP 2020, https://doi.org/10.1109/ICASSP40776.2020.9053174
"""

AUDIOSET = PublishedTables(
    page="https://research.google.com/audioset/download.html",
    tables={
        "balanced_train_segments.csv": "train",
        "unbalanced_train_segments.csv": "train",
        "eval_segments.csv": "test",
    },
    columns=("video", "start", "end", "label"),
    names=("{video}", "Y{video}", "{video}_{start:d}", "{video}_{start:d}000"),
    comment="#",
    separator=",",
    class_names=("class_labels_indices.csv", "mid", "display_name"),
)
"""List AudioSet (Gemmeke et al., ICASSP 2017): eval_segments.csv (test), (un)balanced_train_segments.csv (train).

Columns: https://research.google.com/audioset/download.html. The page defines no file names: `{id}`, `Y{id}`,
`{id}_{start}` and `{id}_{milliseconds}` are those of common downloaders. class_labels_indices.csv names the labels.

Reference: Gemmeke et al., Audio Set: an ontology and human-labeled dataset for audio events, ICASSP 2017, https://doi.org/10.1109/ICASSP.2017.7952261
"""

AUDIOCAPS = PublishedTables(
    page="https://github.com/cdjkim/audiocaps/tree/master/dataset",
    tables={"train.csv": "train", "val.csv": "valid", "test.csv": "test"},
    columns={"youtube_id": "video", "start_time": "start", "caption": "caption"},
    names=("Y{video}", "{video}", "{video}_{start:d}", "{video}_{start:d}000", "{audiocap_id}"),
    seconds=10,
)
"""List AudioCaps (Kim et al., NAACL 2019): train.csv, val.csv and test.csv, one clip with all of its captions.

Columns: https://github.com/cdjkim/audiocaps/tree/master/dataset. The page defines no file names: `Y{id}`, `{id}`,
`{id}_{start}` and `{audiocap_id}` are those of common downloaders.

Reference: Kim et al., AudioCaps: generating captions for audios in the wild, NAACL 2019, https://doi.org/10.18653/v1/N19-1011
"""

CLOTHO = PublishedTables(
    page="https://zenodo.org/records/4783391",
    tables={
        "clotho_captions_development.csv": "train",
        "clotho_captions_validation.csv": "valid",
        "clotho_captions_evaluation.csv": "test",
    },
    columns={"file_name": "video", "caption_1": "caption_1"},
    names=("{table}/{video}", "{video}"),
    id="{table}/{video}",
)
"""List Clotho (Drossos et al., ICASSP 2020): clotho_captions_*.csv; development is train, evaluation is test.

Files: https://zenodo.org/records/4783391.

Reference: Drossos et al., Clotho: an audio captioning dataset, ICASSP 2020, https://doi.org/10.1109/ICASSP40776.2020.9052990
"""

KINETICS_SOUNDS = PublishedTables(
    page="https://github.com/activitynet/ActivityNet/tree/master/Crawler/Kinetics",
    tables={"*train.csv": "train", "*val.csv": "valid", "*validate.csv": "valid", "*test.csv": "test"},
    columns={"label": "label", "youtube_id": "video", "time_start": "start", "time_end": "end"},
    names=("{video}_{start:06d}_{end:06d}", "{video}"),
    id="{video}_{start:06d}",
    classes=frozenset(
        split_labels(
            "blowing nose|blowing out candles|bowling|chopping wood|dribbling basketball|laughing|mowing lawn|"
            "playing accordion|playing bagpipes|playing bass guitar|playing clarinet|playing drums|playing guitar|"
            "playing harmonica|playing keyboard|playing organ|playing piano|playing saxophone|playing trombone|"
            "playing trumpet|playing violin|playing xylophone|ripping paper|shoveling snow|shuffling cards|singing|"
            "stomping grapes|tap dancing|tapping guitar|tapping pen|tickling"
        )
    ),
)
"""List Kinetics-Sounds (Arandjelovic and Zisserman, ICCV 2017): 31 classes of Kinetics' tables.

Classes: appendix A1 of the paper, without the three that Kinetics no longer has; four names are
Kinetics' present ones (blowing out candles, dribbling basketball, mowing lawn, stomping grapes; unverified). Tables and
file names `{id}_{start:06d}_{end:06d}.mp4`: https://github.com/activitynet/ActivityNet/tree/master/Crawler/Kinetics.

Reference: Arandjelovic and Zisserman, Look, listen and learn, ICCV 2017, https://arxiv.org/abs/1705.08168
"""

MUSIC = PublishedTables(
    page="https://github.com/roudimit/MUSIC_dataset",
    tables={"MUSIC_solo_videos.json": "", "MUSIC_duet_videos.json": ""},
    columns=(),
    names=("{label}/{video}", "{video}"),
    separator=" ",
)
"""List MUSIC (Zhao et al., ECCV 2018): videos by instrument; duets have two labels, no splits.

Files: https://github.com/roudimit/MUSIC_dataset. Folders `{instrument}/{id}`: README of
https://github.com/hangzhaomit/Sound-of-Pixels.

Reference: Zhao et al., The sound of pixels, ECCV 2018, https://arxiv.org/abs/1804.03160
"""
