from feature_extraction.ground.atomic import remove_leftovers


def test_removes_what_a_kill_left_of_this_file_and_of_no_other(tmp_path):
    for name in [".f.ab_d1234.partial.h5", ".f.0.ab_d1234.partial.h5", ".g.ab_d1234.partial.h5", "f.h5", ".f.h5"]:
        (tmp_path / name).write_text("")
    remove_leftovers(tmp_path / "f.h5")
    kept = [".f.0.ab_d1234.partial.h5", ".f.h5", ".g.ab_d1234.partial.h5", "f.h5"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    remove_leftovers(tmp_path / "nowhere" / "f.h5")
