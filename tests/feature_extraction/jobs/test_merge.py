import dataclasses
import json
import os
import resource
import shutil
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from aadml.feature_extraction.backbones import extractor, mean_over_time
from aadml.feature_extraction.feature_file import writing
from aadml.feature_extraction.feature_file.content import Texts
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.frontends.whitening import PcaWhitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs import merge as merging
from aadml.feature_extraction.jobs.merge import merge
from aadml.feature_extraction.jobs.shard_names import shard_path
from aadml.feature_extraction.jobs.windows import read_windows, windowed
from aadml.feature_extraction.manifest import read_manifest
from tests.feature_extraction.small_jobs import extract

AUDIO = extractor("log-mel", "audio")
PLAIN = dataclasses.replace(AUDIO, pool=mean_over_time)


@pytest.fixture(scope="module")
def job(tmp_path_factory, render):
    """A job in one piece and in three, with a failure in one shard; the last shard holds nothing but a failure."""
    folder = tmp_path_factory.mktemp("job")
    lines = ["id,media,label,split,note"]
    for number in range(4):
        render(folder / f"{number}.m4a", seconds=1.0 + number, picture=False)
        lines.append(f"{number},{number}.m4a,{number % 2},train,n{number}")
    lines[3] = "2,none.m4a,0,test,gone"
    (folder / "manifest.csv").write_text("\n".join(lines))
    manifest = read_manifest(folder / "manifest.csv")
    extract(manifest, folder / "whole.h5", [AUDIO], workers=1, sequence=True)
    for index in range(3):
        extract(manifest, folder / f"{index}.h5", [AUDIO], workers=1, sequence=True, shard=(index, 3))
    return folder


@pytest.mark.slow
def test_the_shards_of_a_job_give_the_bytes_of_the_whole(job, tmp_path):
    merged = merge([job / "2.h5", job / "0.h5", job / "1.h5"], tmp_path / "f.h5")
    assert (tmp_path / "f.h5").read_bytes() == (job / "whole.h5").read_bytes()
    assert (tmp_path / "f.h5.failures.csv").read_bytes() == (job / "whole.h5.failures.csv").read_bytes()
    assert (merged.clips, merged.dimensions) == (3, {"audio": 128})
    assert [failure.reason for failure in merged.failures] == ["missing"]


def test_refuses_shards_that_do_not_make_a_job(job, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    for names, message in [
        (["0.h5", "1.h5"], r"the job is not complete, because shards are missing \(2/3\)"),
        (["0.h5", "1.h5", "1.h5"], "is shard 1/3, and so is"),
        (["0.h5", "1.h5", "whole.h5"], "is not a shard of a job"),
    ]:
        with pytest.raises(InputError, match=message):
            merge([job / name for name in names], tmp_path / "f.h5")
    with pytest.raises(InputError, match="is not a feature file"):
        merge([job / f"{index}.h5" for index in range(3)], tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_never_replaces_a_shard_by_the_whole(job, tmp_path):
    shards = [tmp_path / f"{index}.h5" for index in range(3)]
    for path in shards:
        path.write_bytes((job / path.name).read_bytes())
    with pytest.raises(InputError, match=r"1\.h5 is one of the shards to merge"):
        merge(shards, shards[1])
    assert shards[1].read_bytes() == (job / "1.h5").read_bytes()


def test_never_replaces_features_of_other_clips(job, tmp_path):
    content = read_features(job / "whole.h5")
    write_features(tmp_path / "f.h5", dataclasses.replace(content, ids=tuple(f"other {name}" for name in content.ids)))
    before = (tmp_path / "f.h5").read_bytes()
    with pytest.raises(InputError, match=r"shares none of its \d+ clips with the shards, so this feature file is not"):
        merge([job / f"{index}.h5" for index in range(3)], tmp_path / "f.h5")
    assert (tmp_path / "f.h5").read_bytes() == before


def cut(job, output, windows):
    manifest = windowed(read_manifest(job / "manifest.csv"), read_windows(windows), 1)
    for index in range(2):
        extract(manifest, shard_path(output, (index, 2)), [AUDIO], workers=1, shard=(index, 2))
    return merge([], output)


def test_other_windows_of_the_same_recordings_replace_those_of_an_earlier_call(job, tmp_path):
    assert [cut(job, tmp_path / "f.h5", windows).clips for windows in ("1s", "0.5s")] == [7, 14]


def test_shards_whose_windows_differ_for_want_of_media_are_refused_with_a_hint(job, tmp_path):
    for name in ("manifest.csv", "0.m4a", "1.m4a", "3.m4a"):
        shutil.copy(job / name, tmp_path / name)
    cut(tmp_path, tmp_path / "f.h5", "1s")
    (tmp_path / "1.m4a").unlink()
    manifest = windowed(read_manifest(tmp_path / "manifest.csv"), read_windows("1s"), 1)
    extract(manifest, tmp_path / "f.1-of-2.h5", [AUDIO], workers=1, shard=(1, 2))
    with pytest.raises(InputError, match=r"a different job .*; with windows, extract each shard where the media"):
        merge([], tmp_path / "f.h5")


def test_more_shards_than_files_may_be_open_are_merged(job, tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = (48, limits[1])
    opened = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, low)
        with suppress(OSError):
            while True:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        os.close(opened.pop())  # one file may be open, but there are three shards
        assert merge([job / f"{index}.h5" for index in range(3)], tmp_path / "f.h5").clips == 3
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == low
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for handle in opened:
            os.close(handle)


def test_a_hard_limit_of_open_files_is_named(job, tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2, 3))
    with pytest.raises(InputError, match="opens all 3 shards, but a process may open only 3 files; raise"):
        merge([job / f"{index}.h5" for index in range(3)], tmp_path / "f.h5")


def altered(job, tmp_path, **changes):
    content = read_features(job / "1.h5")
    write_features(tmp_path / "other.h5", dataclasses.replace(content, **changes))
    return [job / "0.h5", tmp_path / "other.h5", job / "2.h5"]


def test_refuses_features_of_another_kind(job, tmp_path):
    provenance = {"audio": {**read_features(job / "1.h5").provenance["audio"], "extractor": "vggish"}}
    with pytest.raises(InputError, match=r"not of the same kind as those of .*extractor is 'vggish' instead of"):
        merge(altered(job, tmp_path, provenance=provenance), tmp_path / "f.h5")


def test_refuses_other_jobs_classes_and_lost_rows(job, tmp_path):
    shard = read_features(job / "1.h5").shard
    for changes, message in [
        ({"shard": dataclasses.replace(shard, manifest="x")}, r"a different job .*; pass the shards of one job$"),
        ({"class_names": ("0", "1", "2")}, "classes, columns, sequences or fits"),
        ({"columns": {}}, "classes, columns, sequences or fits"),
        (
            {"shard": dataclasses.replace(shard, rows=shard.rows + 3)},
            r"does not list each clip of its shard once \(expected 1, listed 1, correct 0\); extract",
        ),
        (
            {
                "shard": dataclasses.replace(
                    shard, failures=((int(shard.rows[0]), ("1", "m", "audio", "corrupt", "d")),)
                )
            },
            r"\(expected 1, listed 2, correct 1\)",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            merge(altered(job, tmp_path, **changes), tmp_path / "f.h5")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"total": 10**17}, r"\(expected 33333333333333333, listed 1, correct 1\); extract this shard again"),
        ({"failures": ((1, ("1", "corrupt")),)}, "/shard does not describe its failed clips; extract the shard again"),
        ({"failures": ((10**30, ("1", "m", "audio", "corrupt", "d")),)}, r"\(expected 1, listed 2, correct 1\)"),
        (
            {"index": 0, "count": 10**12, "total": 1, "rows": np.array([0])},
            r"shards are missing \(1/1000000000000, .*, 20/1000000000000\); extract and pass all shards",
        ),
    ],
)
def test_refuses_a_malformed_shard_in_one_line(job, tmp_path, changes, message):
    shard = dataclasses.replace(read_features(job / "1.h5").shard, **changes)
    with pytest.raises(InputError, match=message):
        merge(altered(job, tmp_path, shard=shard)[1:2], tmp_path / "f.h5")


@pytest.fixture(scope="module")
def fitted_job(tmp_path_factory, render):
    """Extractors with a PCA to be fitted, one clip that fails, and a shard without any clip."""
    folder = tmp_path_factory.mktemp("fitted")
    lines = ["id,media,label,split"]
    for number in range(6):
        render(folder / f"{number}.m4a", seconds=1.0 + number / 2, tone=300.0 + 90 * number, picture=False)
        lines.append(f"{number},{number}.m4a,{number % 2},{('train', 'test', 'train')[number % 3]}")
    (folder / "3.m4a").write_bytes(b"no sound")
    (folder / "manifest.csv").write_text("\n".join(lines))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("sequence", [False, True])
def test_a_pca_of_shards_is_that_of_the_whole_to_the_byte(fitted_job, tmp_path, sequence):
    manifest = read_manifest(fitted_job / "manifest.csv")
    reduced = dataclasses.replace(PLAIN, dimension=3, fit=PcaWhitening(3))
    plain = fitted_job / f"plain {sequence}.h5"
    extract(manifest, plain, [PLAIN], workers=1, sequence=True)
    extract(manifest, tmp_path / "whole.h5", [reduced], workers=1, sequence=sequence)
    shards = [tmp_path / f"{index}.h5" for index in range(4)]
    for index, path in enumerate(shards):
        extract(manifest, path, [reduced], workers=1, sequence=sequence, shard=(index, 4))
    assert "audio is not transformed yet" in read_features(shards[0]).notes()[0]
    merged = merge(shards, tmp_path / "f.h5")
    assert merged.dimensions == {"audio": 3}
    assert (tmp_path / "f.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    content, before = read_features(tmp_path / "f.h5"), read_features(plain)
    assert (content.notes(), list(content.sequences)) == ((), ["audio"] if sequence else [])
    assert_whitened_by_svd(content, before)


@pytest.mark.slow
@pytest.mark.parametrize("sequence", [False, True])
def test_shards_with_incomplete_clips_give_the_bytes_of_the_whole(tmp_path, render, sequence, monkeypatch):
    """The second shard of three has pictures alone, so that nothing says how wide its sounds would be."""
    lines = ["id,media,label,split"]
    for number in range(6):
        name = render(
            tmp_path / f"{number}.mp4",
            seconds=1.0 + number / 4,
            tone=None if number in (1, 4) else 300.0 + 90 * number,
            picture=number != 3,
        ).name
        lines.append(f"{number},{name},{number % 2},{('train', 'test')[number == 5]}")
    (tmp_path / "manifest.csv").write_text("\n".join(lines))
    manifest = read_manifest(tmp_path / "manifest.csv")
    both = [dataclasses.replace(PLAIN, dimension=3, fit=PcaWhitening(3)), extractor("hog-color", "visual")]
    extract(manifest, tmp_path / "whole.h5", both, workers=1, sequence=sequence)
    for index in range(3):
        extract(manifest, tmp_path / f"{index}.h5", both, workers=1, sequence=sequence, shard=(index, 3))
    merge([tmp_path / f"{index}.h5" for index in range(3)], tmp_path / "f.h5")
    assert (tmp_path / "f.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    content = read_features(tmp_path / "f.h5")
    assert content.has("audio").tolist() == [True, False, True, True, False, True]
    assert content.has("visual").tolist() == [True, True, True, False, True, True]
    described = writing._described
    earlier = lambda shard: json.dumps({**json.loads(described(shard)), "incomplete": "drop"})  # noqa: E731
    monkeypatch.setattr(writing, "_described", earlier)
    extract(manifest, tmp_path / "1.h5", both, workers=1, sequence=sequence, shard=(1, 3))
    with pytest.raises(InputError, match="--incomplete drop, which was removed"):
        merge([tmp_path / f"{index}.h5" for index in range(3)], tmp_path / "f.h5")


def assert_whitened_by_svd(content, before):
    """Compare features with what a singular value decomposition of the centered training rows gives."""
    timeline = before.sequences["audio"]
    clips = np.split(timeline.values.astype(np.float64), timeline.offsets[1:-1])
    train = np.concatenate([clip for clip, split in zip(clips, before.splits, strict=True) if split == "train"])
    _, values, vectors = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)
    scale = np.sqrt(values[:3] ** 2 / (len(train) - 1) + 1e-4)
    wanted = np.stack([((clip - train.mean(axis=0)) @ vectors[:3].T / scale).mean(axis=0) for clip in clips])
    signs = np.sign((wanted * content.features["audio"]).sum(axis=0))
    np.testing.assert_allclose(content.features["audio"], wanted * signs, rtol=1e-3, atol=2e-4)


@pytest.mark.slow
def test_what_a_shard_asks_to_be_fitted_is_looked_up_and_never_imported(fitted_job, tmp_path):
    manifest = read_manifest(fitted_job / "manifest.csv")
    reduced = dataclasses.replace(PLAIN, dimension=3, fit=PcaWhitening(3))
    for index in range(2):
        extract(manifest, tmp_path / f"{index}.h5", [reduced], workers=1, shard=(index, 2))
    for pending, message in [
        ({"name": "os:system", "dimension": 3}, "which is not pca-whitening"),
        ({"name": "pca-whitening", "dimensions": 3}, "does not describe a shard"),
        ({}, "does not describe a shard"),
    ]:
        paths = []
        for index in range(2):
            content = read_features(tmp_path / f"{index}.h5")
            paths.append(tmp_path / f"other {index}.h5")
            shard = dataclasses.replace(content.shard, pending={"audio": pending})
            write_features(paths[-1], dataclasses.replace(content, shard=shard))
        with pytest.raises(InputError, match=message):
            merge(paths, tmp_path / "f.h5")


@pytest.mark.slow
@pytest.mark.parametrize(("column", "cells"), [("labels", ["a|b", "b", "c", "c|a"]), (None, None)])
def test_jobs_with_several_labels_and_with_none_give_the_bytes_of_the_whole(tmp_path, render, column, cells):
    render(tmp_path / "m.m4a", seconds=1.0, picture=False)
    header = ["id", "media", "split", *([column] if column else [])]
    rows = [[str(n), "m.m4a", "train", *([cells[n]] if cells else [])] for n in range(4)]
    (tmp_path / "manifest.csv").write_text("\n".join(",".join(row) for row in [header, *rows]))
    manifest = read_manifest(tmp_path / "manifest.csv")
    extract(manifest, tmp_path / "whole.h5", [AUDIO], workers=1)
    for index in range(2):
        extract(manifest, tmp_path / f"{index}.h5", [AUDIO], workers=1, shard=(index, 2))
    merge([tmp_path / "1.h5", tmp_path / "0.h5"], tmp_path / "f.h5")
    assert (tmp_path / "f.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    content = read_features(tmp_path / "f.h5")
    if column is None:
        assert (content.labels.tolist(), content.class_names, content.all_labels) == ([-1] * 4, (), None)
    else:
        assert content.class_names == ("a", "b", "c")
        assert content.labels.tolist() == [0, 1, 2, 2]
        assert content.all_labels.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]]


def test_texts_of_parts_with_and_without_several_texts_are_joined():
    def part(texts, values):
        rows = {"text": SimpleNamespace(pooled=SimpleNamespace(array=lambda: np.float32(values)))}
        present = np.asarray([value != [0] for value in values])
        return SimpleNamespace(content=SimpleNamespace(texts=texts, ids=present, has=lambda _: present), rows=rows)

    single, several = part(None, [[1], [0], [3]]), part(Texts(np.float32([[4], [5]]), np.asarray([1, 1])), [[0], [4]])
    bare = part(Texts(np.zeros((0, 0), np.float32), np.zeros(0, np.int64)), [])
    assert merging._texts([single, single]) is None
    joined = merging._texts([single, bare, several])
    assert (joined.values.tolist(), joined.rows.tolist()) == ([[1], [3], [4], [5]], [0, 2, 4, 4])
