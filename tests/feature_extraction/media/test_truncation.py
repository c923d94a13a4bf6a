import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aadml.feature_extraction.media.truncation import Ending, ending, is_media


def missing_bytes(file):
    return ending(file).missing


@pytest.mark.parametrize(("name", "codecs"), [("a.mp4", ("mpeg4", "aac")), ("a.webm", ("libvpx", "libopus"))])
def test_counts_what_was_cut_off(tmp_path, render, name, codecs):
    whole = render(tmp_path / name, rate=48_000, codecs=codecs).read_bytes()
    assert missing_bytes(io.BytesIO(whole)) == 0
    for cut in (1, 10, 100):
        assert missing_bytes(io.BytesIO(whole[:-cut])) == cut
    assert missing_bytes(io.BytesIO(whole[: len(whole) // 2])) > 0  # of later boxes nothing is known


def test_does_not_judge_what_it_does_not_understand():
    for content in [
        b"",
        b"RIFF\xff\xff\xff\xffWAVE",
        b"\x00\x00\x00\x00ftyp",
        b"\x1a\x45\xdf\xa3",
        b"\x1a\x45\xdf\xa3\x00",
    ]:
        assert missing_bytes(io.BytesIO(content)) == 0


def test_a_box_or_a_segment_of_unknown_length_runs_to_the_end():
    boxes = b"\x00\x00\x00\x08ftyp" + b"\x00\x00\x00\x00mdat" + b"x" * 9
    segment = b"\x1a\x45\xdf\xa3\x80" + b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff" + b"x" * 9
    assert missing_bytes(io.BytesIO(boxes)) == 0
    assert missing_bytes(io.BytesIO(segment)) == 0


BOX = (16).to_bytes(4) + b"ftyp" + b"x" * 8


@pytest.mark.parametrize(
    ("after", "missing"),
    [
        (b"", 0),
        ((20).to_bytes(4) + b"mdat" + b"x" * 4, 8),
        ((9).to_bytes(4) + b"mdat", 1),  # its header alone is there
        ((8).to_bytes(4) + b"free" + (20).to_bytes(4) + b"mdat", 12),  # a box may be empty
        ((20).to_bytes(4) + b"mda", 0),  # not even its header
        ((7).to_bytes(4) + b"mdat" + b"x" * 9, 0),  # shorter than its own header
        ((7).to_bytes(4) + b"mdat" + b"\x00\x00\x40\x00free", 0),
        (b"\x00\x00\x00\x01mdat" + (7).to_bytes(8) + b"x" * 9, 0),
        ((900).to_bytes(4) + b"\x00\x00\x00\x00", 0),  # padding, no box
        ((900).to_bytes(4) + b"m at" + b"x" * 9, 0),
        (b"\x00" * 64, 0),
    ],
)
def test_a_box_that_is_broken_announces_nothing(after, missing):
    assert missing_bytes(io.BytesIO(BOX + after)) == missing


def test_reads_lengths_of_eight_bytes():
    box = b"\x00\x00\x00\x01mdat" + (1000).to_bytes(8) + b"x" * 84
    assert missing_bytes(io.BytesIO(box)) == 900


@given(st.binary(max_size=64), st.sampled_from([b"", b"\x00\x00\x00\x08ftyp", b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67"]))
@example(b"\x01", b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67")
def test_answers_for_any_bytes_and_rewinds(content, head):
    file = io.BytesIO(head + content)
    assert missing_bytes(file) >= 0
    assert file.tell() == 0


def wav(size, held, *, riff=36, head=b"RIFF"):
    chunk = b"fmt " + (16).to_bytes(4, "little") + b"\1\0\1\0\x80\x3e\0\0\0\x7d\0\0\2\0\x10\0"
    return head + riff.to_bytes(4, "little") + b"WAVE" + chunk + b"data" + size.to_bytes(4, "little") + b"\7" * held


def test_knows_a_whole_wav_a_cut_one_and_an_empty_one():
    assert ending(io.BytesIO(wav(100, 100))) == Ending()
    assert ending(io.BytesIO(wav(1000, 100))) == Ending(900, tolerable=False, open_ended=True, share=0.9)
    assert ending(io.BytesIO(wav(104, 100))) == Ending(4, open_ended=True, share=4 / 104)
    assert ending(io.BytesIO(wav(0, 0))) == Ending(0, tolerable=False, empty=True)
    assert ending(io.BytesIO(wav(0, 0)[:30])) == Ending(empty=True)


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFF000, 0x7FFFFFFF, 0xFFFFFFFF - 36])
def test_a_wav_from_a_pipe_is_open_ended(size):
    assert ending(io.BytesIO(wav(size, 100, riff=min(size + 36, 0xFFFFFFFF)))) == Ending(open_ended=True)


def test_the_long_size_of_a_wav_counts_where_the_short_one_is_none():
    whole = wav(0xFFFFFFFF, 1000, head=b"RF64")
    cut = Ending(4000, tolerable=False, open_ended=True, share=0.8)
    for long_size, expected in [(1000, Ending()), (5000, cut), (0, Ending(open_ended=True))]:
        long = b"ds64" + (24).to_bytes(4, "little") + bytes(8) + long_size.to_bytes(8, "little") + bytes(8)
        assert ending(io.BytesIO(whole[:12] + long + whole[12:])) == expected


def test_an_avi_announces_its_length():
    content = b"RIFF" + (1000).to_bytes(4, "little") + b"AVI " + bytes(400)
    assert ending(io.BytesIO(content)) == Ending(596, share=596 / 1008)


def test_the_last_page_of_an_ogg_file_says_that_it_is_the_last(tmp_path, render):
    whole = render(tmp_path / "a.ogg", rate=48_000, picture=False, codecs=("", "libopus")).read_bytes()
    assert ending(io.BytesIO(whole)) == Ending()
    for cut in (1, 100, len(whole) // 2):
        assert ending(io.BytesIO(whole[:-cut])).unmarked


@pytest.mark.parametrize(
    ("found", "finding", "remarks"),
    [
        (Ending(), "", ()),
        (Ending(65, tolerable=False), "the file is cut short: 65 bytes are missing at its end", ()),
        (Ending(0, tolerable=False, empty=True), "", ()),
        (Ending(64, unmarked=True), "", ("the file states 64 bytes more than it contains",)),
        (Ending(unmarked=True), "", ("the last page is not marked as the end, so the file may be cut short",)),
    ],
)
def test_a_truncated_file_is_a_finding_and_a_miscounted_one_a_remark(found, finding, remarks):
    assert (found.finding, found.remarks()) == (finding, remarks)


@pytest.mark.parametrize(("more", "tolerable"), [(64, True), (65, False)])
def test_a_writer_may_miscount_by_64_bytes(more, tolerable):
    assert ending(io.BytesIO(wav(100 + more, 100))).tolerable is tolerable
    box = BOX + (8 + more).to_bytes(4) + b"mdat"
    assert ending(io.BytesIO(box)) == Ending(more, tolerable=tolerable)


@pytest.mark.parametrize(
    ("length", "is_endless"),
    [(2**31 - 4097, False), (2**31 - 4096, True), (2**31, True), (2**31 + 1, False), (2**32 - 4097, False)],
)
def test_lengths_just_below_two_and_four_gibibytes_are_unknown(length, is_endless):
    assert ending(io.BytesIO(wav(length, 100))).open_ended
    assert (ending(io.BytesIO(wav(length, 100))).missing == 0) == is_endless
    avi = b"RIFF" + length.to_bytes(4, "little") + b"AVI " + bytes(400)
    assert (ending(io.BytesIO(avi)).missing == 0) == is_endless


def page(*, last, segments=(3, 4), held=7, flags=2):
    header = b"OggS\0" + bytes([flags | 4 * last]) + bytes(20)
    return header + bytes([len(segments), *segments]) + b"x" * held


@pytest.mark.parametrize(
    ("content", "unmarked"),
    [
        (page(last=True), False),
        (page(last=False), True),
        (page(last=True, held=6), True),
        (page(last=True, held=8), False),
        (page(last=True, segments=(), held=0), False),
        (page(last=True, segments=(), held=0)[:-1], True),
        (page(last=False) + page(last=True), False),
        (page(last=True) + page(last=False), True),
        (page(last=False) + b"x" * 200_000 + page(last=True, segments=[255] * 255, held=255 * 255), False),
    ],
)
def test_the_last_page_must_be_whole_and_marked(content, unmarked):
    assert ending(io.BytesIO(content)) == Ending(unmarked=unmarked)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"\x1a\x45\xdf\xa3", True), (b"....moov", True), (b"....text", False), (b"\xff\xe1", True),
        (b"\xff\xe0", False), (b"\xff\xfe", False), (b"\xff\xfb", True), (b"\xfe\xfb", False),
        (b"G" + b"." * 187 + b"G", True), (b"G" + b"." * 188 + b"G", False), (b"G", False), (b"", False),
    ],
)  # fmt: skip
def test_the_beginning_of_a_file_decides_whether_it_is_media(head, expected):
    file = io.BytesIO(head)
    file.seek(0, 2)
    assert is_media(file) is expected
