"""A zoo of feature files that were made to harm: each is answered by one line, in bounded time and memory."""

import json
import os
import signal
import subprocess
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.reading import is_feature_file, read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.foreign import hdf5
from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays, open_hdf5, require_keys
from aadml.feature_extraction.ground.errors import InputError
from tests.edited_hdf5 import edited

pytestmark = pytest.mark.usefixtures("looks_in_processes")


def healthy(path, n=12):
    generator = np.random.default_rng(0)
    values = generator.normal(size=(n, 8)).astype(np.float32)
    write_features(
        path,
        FeatureFile(
            features={"audio": values, "visual": values * 2},
            labels=np.arange(n) % 3,
            ids=tuple(f"clip {number}" for number in range(n)),
            splits=("train", "test", "valid") * (n // 3),
            class_names=("a", "b", "c"),
            columns={"speaker": tuple("xyz" * (n // 3))},
        ),
    )
    return path


def outside(file, tmp_path):
    (tmp_path / "secret").write_bytes(b"root:x:0:0\n" * 40)
    del file["id"]
    file.create_dataset("id", (12,), "S11", external=[(str(tmp_path / "secret"), 0, 132)])


def external_link(file, tmp_path):
    del file["id"]
    file["id"] = h5py.ExternalLink(str(healthy(tmp_path / "other.h5")), "/id")


def external_link_in_a_column(file, tmp_path):
    file["column/more"] = h5py.ExternalLink(str(healthy(tmp_path / "other.h5")), "/id")


def dangling_link(file, tmp_path):
    file["column/more"] = h5py.SoftLink("/nowhere")


def dangling_features(file, tmp_path):
    del file["audio"]
    file["audio"] = h5py.SoftLink("/nowhere")


def circle_of_links(file, tmp_path):
    file["column/more"] = h5py.SoftLink("/column/less")
    file["column/less"] = h5py.SoftLink("/column/more")


def virtual(file, tmp_path):
    del file["audio"]
    layout = h5py.VirtualLayout((12, 8), "f4")
    layout[:] = h5py.VirtualSource(str(healthy(tmp_path / "other.h5")), "audio", (12, 8))
    file.create_virtual_dataset("audio", layout)


def many_rows(file, tmp_path):
    del file["audio"]
    file.create_dataset("audio", (10**12, 8), "f4", chunks=(1024, 8))


def many_compressed_zeros(file, tmp_path):
    del file["audio"]
    file.create_dataset("audio", data=np.zeros((300_000, 256), np.float32), compression="gzip", chunks=(1000, 256))


def huge_chunk(file, tmp_path):
    del file["audio"]
    file.create_dataset("audio", (12, 8), "f4", chunks=(2**14, 2**14), maxshape=(None, None), compression="gzip")


def text_that_repeats(path):
    """Make every row refer to one string of a megabyte: far more text than the file has bytes."""
    with edited(path) as file:
        del file["id"]
        text = file.create_dataset("id", (20_000,), h5py.string_dtype(), chunks=(20_000,))
        text[:] = ["y"] * 19_999 + ["x" * 10**6]
        chunk = text.id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    last = content[chunk.byte_offset + chunk.size - 16 : chunk.byte_offset + chunk.size]
    content[chunk.byte_offset : chunk.byte_offset + chunk.size] = last * 20_000
    path.write_bytes(content)


def scalar_label(file, tmp_path):
    del file["label"]
    file["label"] = np.int64(1)


def empty_label(file, tmp_path):
    del file["label"]
    file["label"] = h5py.Empty("i8")


def matrix_of_labels(file, tmp_path):
    del file["label"]
    file["label"] = np.zeros((12, 2), np.int64)


def complex_features(file, tmp_path):
    del file["audio"]
    file["audio"] = np.ones((12, 8), np.complex64)


def too_large_for_float32(file, tmp_path):
    del file["audio"]
    file["audio"] = np.full((12, 8), 1e300)


def provenance_of_another_type(file, tmp_path):
    file["audio"].attrs["provenance"] = np.arange(3)


def provenance_is_a_list(file, tmp_path):
    file["audio"].attrs["provenance"] = "[1, 2]"


def provenance_is_too_deep(file, tmp_path):
    file["audio"].attrs["provenance"] = "[" * 20_000


def notes_are_a_number(file, tmp_path):
    file["audio"].attrs["provenance"] = json.dumps({"notes": 3})


def version_of_another_type(file, tmp_path):
    file.attrs["version"] = np.arange(3)


def doubled_id(file, tmp_path):
    file["id"][1] = "clip 0"


def doubled_class(file, tmp_path):
    file["class_names"][1] = "a"


def columns_are_an_array(file, tmp_path):
    del file["column"]
    file["column"] = np.arange(3)


def fitted_is_an_array(file, tmp_path):
    file["fitted/audio"] = np.arange(3)


def features_are_a_group(file, tmp_path):
    del file["audio"]
    file.create_group("audio")


def shard_is_a_list(file, tmp_path):
    file["shard_rows"] = np.arange(12)
    file.create_dataset("shard", data="[1]", dtype=h5py.string_dtype())


ZOO = {
    outside: "/id stores its values in another file, which is not read",
    external_link: "/id is a link to another file, which is not followed",
    external_link_in_a_column: "/column/more is a link to another file, which is not followed",
    dangling_link: "/column/more is a link without a target",
    dangling_features: "/audio is a link without a target",
    circle_of_links: "cannot be read as HDF5 (Special link traversal failed (too many links))",
    virtual: "/audio is a virtual dataset of other files, which are not read",
    many_rows: "/audio declares 32,000,000,000,000 bytes, but stores 0",
    many_compressed_zeros: "/audio declares 307,200,000 bytes, but stores ",
    huge_chunk: "/audio is stored in 1 chunks of 1,073,741,824 bytes",
    scalar_label: "/label is a single value or empty, but must be an array with rows",
    empty_label: "/label is a single value or empty, but must be an array with rows",
    matrix_of_labels: "/label is int64 (12, 2), but must be int64 (12,)",
    complex_features: "/audio contains complex64, but must contain real numbers",
    too_large_for_float32: "/audio: row 0 contains NaN or infinity",
    provenance_of_another_type: "its attribute `provenance` is not JSON",
    provenance_is_a_list: "its attribute `provenance` is not a JSON object",
    provenance_is_too_deep: "its attribute `provenance` is not JSON",
    notes_are_a_number: "the notes in its attribute `provenance` are not a list of strings",
    version_of_another_type: "is a feature file of version '[0 1 2]', but this program reads versions 1 and 2",
    doubled_id: "/id contains 'clip 0' 2 times",
    doubled_class: "/class_names contains 'a' 2 times",
    columns_are_an_array: "/column is not a group",
    fitted_is_an_array: "/audio is not a group",
    features_are_a_group: "contains no array /audio",
    shard_is_a_list: "/shard does not describe a shard",
}


@pytest.mark.slow
@pytest.mark.parametrize("harm", ZOO, ids=lambda harm: harm.__name__)
def test_what_was_made_to_harm_is_answered_by_one_line(tmp_path, harm):
    path = healthy(tmp_path / "f.h5")
    with edited(path) as file:
        harm(file, tmp_path)
    with pytest.raises(InputError) as caught:
        read_features(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert ZOO[harm] in message
    assert "\n" not in message


def test_text_that_repeats_is_not_unfolded(tmp_path):
    path = healthy(tmp_path / "f.h5")
    text_that_repeats(path)
    with pytest.raises(InputError, match=r"memory allocation failed|more text than a file of its size can"):
        read_features(path)


def test_a_link_inside_the_file_is_followed(tmp_path):
    path = healthy(tmp_path / "f.h5")
    with edited(path) as file:
        file.move("audio", "kept_elsewhere")
        file["audio"] = h5py.SoftLink("/kept_elsewhere")
    np.testing.assert_array_equal(
        read_features(path).features["audio"], read_features(healthy(tmp_path / "g.h5")).features["audio"]
    )


def zeroed(path, offset):
    content = bytearray(healthy(path, 300).read_bytes())
    content[offset : offset + 512] = bytes(min(512, len(content) - offset))
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("offset", [0, 512, 1024, 2560, 4096, 8192, 16_384])
def test_a_zeroed_block_anywhere_ends(tmp_path, offset):
    path = zeroed(tmp_path / "f.h5", offset)
    answer = answered(path)
    assert answer == "ok" or (answer.startswith(f"{path}") and "\n" not in answer)


def answered(path):
    try:
        return "ok" if len(read_features(path).ids) == 300 else "lost rows"
    except InputError as error:
        return str(error)


def test_some_zeroed_block_keeps_readers_busy_and_the_look_is_ended(tmp_path):
    """The block of the attributes of the audio features, wherever this version of HDF5 puts it."""
    messages = []
    for offset in range(1536, 6144, 512):
        try:
            read_features(zeroed(tmp_path / f"{offset}.h5", offset))
        except InputError as error:
            messages.append(str(error))
            if "processor time" in messages[-1]:
                break
    assert any("0.6 s of processor time, so the file is damaged or malicious" in each for each in messages)


@pytest.mark.slow
def test_a_small_file_of_many_objects_is_not_taken_for_a_damaged_one(tmp_path):
    """The kind that costs most processor time for a byte: nothing but groups with an attribute and a number."""
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for number in range(3000):
            group = file.create_group(f"clip {number}")
            group.attrs["label"] = "dog"
            group["feature"] = np.zeros(1)
    with open_hdf5(tmp_path / "f.h5") as file:
        assert len(file) == 3000


def test_a_process_that_is_killed_by_the_file_says_by_what(tmp_path, monkeypatch):
    path = healthy(tmp_path / "f.h5")
    look = tmp_path / "hdf5_look.py"
    monkeypatch.setattr(hdf5, "__file__", str(tmp_path / "hdf5.py"))
    for program, message in [
        ("import os; os.abort()", "crashes its reader (SIGABRT), so the file is damaged"),
        ("raise SystemExit('no such luck')", "cannot be inspected (no such luck)"),
        ("print('a strange\\nthing', end='')", "a strange"),
    ]:
        look.write_text(program)
        hdf5._inspected.cache_clear()
        with pytest.raises(InputError) as caught:
            read_features(path)
        assert message in str(caught.value)
    hdf5._inspected.cache_clear()


def test_a_file_is_looked_at_once_while_it_does_not_change(tmp_path, monkeypatch):
    path = healthy(tmp_path / "f.h5")
    started = []
    original = hdf5.subprocess.run
    monkeypatch.setattr(hdf5.subprocess, "run", lambda *a, **k: (started.append(1), original(*a, **k))[1])
    for _ in range(3):
        read_features(path)
    assert len(started) == 1
    os.utime(path, (1, 1))
    read_features(path)
    assert len(started) == 2


def test_what_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.h5")
    for path, message in [
        (tmp_path / "pipe.h5", "is a pipe; pass an HDF5 file"),
        (tmp_path, "is a folder"),
        (tmp_path / "none.h5", "does not exist"),
        (tmp_path / "pipe.h5" / "below", "cannot be read"),
        (f"{tmp_path}/a\0b", "contains a zero byte"),
    ]:
        with pytest.raises(InputError, match=message), open_hdf5(path):
            pass
        assert not is_feature_file(path)


@pytest.mark.slow
@pytest.mark.parametrize("harm", [many_rows, many_compressed_zeros, huge_chunk], ids=lambda harm: harm.__name__)
def test_a_bomb_needs_no_memory(tmp_path, peak_bytes, harm):
    path = healthy(tmp_path / "f.h5")
    with edited(path) as file:
        harm(file, tmp_path)
    program = f"""
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
try:
    read_features({str(path)!r})
    raise SystemExit("it was read")
except InputError:
    pass
"""
    assert peak_bytes(program) < 2**28


def test_arrays_are_of_numbers_or_text_with_rows(tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file["array"], file["complex"], file["empty"] = np.arange(3), np.zeros(2, complex), h5py.Empty("f4")
        file.create_group("group")
        file.create_dataset("lists", (2,), h5py.vlen_dtype(np.float32))[:] = [np.ones(3), np.ones(5)]
        file["pairs"] = np.zeros(2, [("a", "f4"), ("b", "i4")])
        file["text"] = ["a", "b"]
        for number in range(40):
            file[f"n{number:02}"] = number
    assert hdf5_arrays(path, ("array",))["array"].tolist() == [0, 1, 2]
    assert hdf5_arrays(path, ("text",))["text"].tolist() == [b"a", b"b"]
    keys = ["array", "complex", "empty", "group", "lists", *(f"n{number:02}" for number in range(25))]
    for key, problem in {
        "group": ": 'group' is a group, but must be an array; write an array",
        "empty": ": 'empty' is empty, but must contain one row per clip; write the rows",
        "complex": ": 'complex' contains complex128, but must contain real numbers or text; write numbers or text",
        "lists": ": 'lists' contains object, but must contain real numbers or text; write numbers or text",
        "pairs": ": 'pairs' contains [('a', '<f4'), ('b', '<i4')], but must contain real numbers or text; write "
        "numbers or text",
        "none": f" contains no 'none'; pass a file with this key (keys found: {', '.join(keys)})",
    }.items():
        with pytest.raises(InputError) as caught:
            hdf5_arrays(path, (key,))
        assert str(caught.value) == f"{path}{problem}"
    with pytest.raises(InputError, match=r"keys found: none\)$"):
        require_keys("f.h5", ("a",), ())


@pytest.mark.parametrize(
    ("in_matlab", "read"), [((5, 3), (5, 3)), ((5, 4, 3), (5, 4, 3)), ((5, 1), (5, 1)), ((1, 5), (5, 1))]
)
def test_arrays_of_matlab_have_the_axes_that_they_have_in_matlab(tmp_path, in_matlab, read):
    values = np.arange(np.prod(in_matlab)).reshape(in_matlab)
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["array"] = values.T
        file["array"].attrs["MATLAB_class"] = np.bytes_("double")
    array = hdf5_arrays(tmp_path / "a.mat", ("array",))["array"]
    assert array.tolist() == values.reshape(read).tolist()


SLOW = "so the file is damaged or the disk is too slow"


@pytest.mark.parametrize(
    ("size", "status", "problem"),
    [
        (10**6, subprocess.TimeoutExpired("look", 1.0), f"the file cannot be inspected in 152 s, {SLOW}"),
        (10**8, subprocess.TimeoutExpired("look", 1.0), f"the file cannot be inspected in 1530 s, {SLOW}"),
        (
            10**6,
            -signal.SIGPROF,
            "the file cannot be inspected in 1.6 s of processor time, so the file is damaged or malicious",
        ),
        (10**6, -signal.SIGSEGV, "the file crashes its reader (SIGSEGV), so the file is damaged"),
        (10**6, 1, "the file cannot be inspected (last)"),
        (10**6, 2, "the file cannot be inspected (no message)"),
        (10**6, 0, "x" * 500),
    ],
)
def test_an_inspection_has_time_for_the_size_of_the_file(monkeypatch, looks_in_processes, size, status, problem):
    def run(program, *, env, timeout, **_):
        assert program[-2:] == ["f.h5", "1.6" if size == 10**6 else "70.5"]
        assert timeout == (152.0 if size == 10**6 else 1530.0)
        assert env["OMP_NUM_THREADS"] == "1"
        if isinstance(status, Exception):
            raise status
        return SimpleNamespace(returncode=status, stdout=b"x" * 501, stderr=b"first\nlast\n" if status == 1 else b"")

    monkeypatch.setattr(subprocess, "run", run)
    assert hdf5._inspected.__wrapped__("f.h5", size, 0, 0) == problem
