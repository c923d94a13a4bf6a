"""AVE from its annotations and files of splits: all 28 classes, or the 15 of the audio-visual retrieval papers."""

from pathlib import Path

from aadml.data.ave import (
    ANNOTATIONS,
    AVE15,
    CLOCK,
    CLOCK_LIMIT,
    left_out_of_clock,
    read_annotations,
    read_splits,
    split_files,
)
from aadml.data.manifests.listing import ListedClip, Listing
from aadml.data.manifests.media_names import media_index
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import file_digest


def ave(
    source: Path, *, classes: int = 15, clock_limit: int | None = CLOCK_LIMIT, media: Path | None = None, seed: int = 0
) -> Listing:
    """List AVE with its official train, validation and test splits (Tian et al., ECCV 2018).

    The audio-visual retrieval papers use 1,955 clips of 15 classes, with 100 of the 160 clips of Clock. The 100
    clips are 80 train, 10 validation and 10 test clips. The papers do not list these clips, so 100 clips are drawn
    with `seed`. If `clock_limit` is none, the listing has 2,015 clips. The files and their form are documented in
    https://github.com/YapengTian/AVE-ECCV18 and in the ReadMe.txt of the archive.

    Reference: Tian et al., Audio-visual event localization in unconstrained videos, ECCV 2018, https://doi.org/10.1007/978-3-030-01216-8_16

    Args:
        source: the folder with `Annotations.txt` and the files of splits. These files are `trainSet.txt`,
            `valSet.txt` and `testSet.txt` of AVE's archive, or `train_order.h5`, `val_order.h5` and `test_order.h5`
            of the feature release.
        classes: AVE: 15 (the classes of the retrieval papers, default) or 28 (all).
        clock_limit: AVE: number of clips of Clock among the 15 classes (100 by default), or none for no limit.
        media: the folder with the videos, `<video>.mp4` at any depth; by default `source`/AVE.
        seed: random seed for choosing the clips of the class Clock.

    Raises:
        InputError: a missing, invalid or ambiguous file, contradictory files, `classes` other than 15 and 28,
            `media` that is not a folder, or an impossible `clock_limit`.
    """
    if classes not in (15, 28):
        raise InputError(f"ave: classes is {classes}; pass 15 (the retrieval papers) or 28 (all)")
    files = (ANNOTATIONS, *split_files(source).values())
    for name in files:
        if not (source / name).is_file():
            raise InputError(
                f"{source} lacks '{name}'; add Annotations.txt with trainSet.txt, valSet.txt and testSet.txt, or with "
                "the order files train_order.h5, val_order.h5 and test_order.h5"
            )
    annotations = read_annotations(source / ANNOTATIONS)
    split_of = read_splits(source, annotations)
    notes: list[str] = []
    if classes == 15:
        annotations = tuple(line for line in annotations if line.label in AVE15)
        if clock_limit is not None:
            clock = {line.row: split_of[line.row] for line in annotations if line.label == CLOCK}
            left_out = left_out_of_clock(clock, clock_limit, seed)
            annotations = tuple(line for line in annotations if line.row not in left_out)
            notes.append(f"{clock_limit} clips of {CLOCK} were drawn (seed {seed}), and {len(left_out)} were left out")
    videos = media_index(media, source / "AVE")
    entries = tuple(
        ListedClip(
            id=line.name,
            media=videos.find(line.video),
            labels=(line.label,),
            split=split_of[line.row],
            source=line.video,
            columns={"video": line.video, "event_start": line.start, "event_end": line.end, "quality": line.quality},
        )
        for line in annotations
    )
    return Listing(entries, tuple(notes), {name: file_digest(source / name) for name in files})
