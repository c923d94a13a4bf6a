from aadml.feature_extraction.feature_file.class_codes import class_codes
from aadml.feature_extraction.manifest import Manifest, Row


def manifest(*labels):
    rows = tuple(Row(str(n), {}, names[0] if names else "", "train", {}, names[1:]) for n, names in enumerate(labels))
    return Manifest("m.csv", rows, ("bird", "dog"))


def test_labels_are_positions_of_class_names():
    clips = manifest(("dog",), (), ("bird",))
    labels, marked = class_codes(clips, clips.rows)
    assert labels.tolist() == [1, -1, 0]
    assert marked is None


def test_several_classes_are_all_marked_also_where_the_clips_with_several_are_left_out():
    clips = manifest(("dog", "bird"), (), ("bird",))
    labels, marked = class_codes(clips, clips.rows)
    assert labels.tolist() == [1, -1, 0]
    assert marked.tolist() == [[1, 1], [0, 0], [1, 0]]
    _, marked = class_codes(clips, clips.rows[1:])
    assert marked.tolist() == [[0, 0], [1, 0]]
