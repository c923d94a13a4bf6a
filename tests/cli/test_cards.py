"""Where figures are printed for people, they say of which gallery they are."""

import json

import pytest


@pytest.mark.slow
def test_card_audit_and_page_say_the_gallery_and_give_map_without_the_own_clip(aadml, small_run):
    stored = json.loads((small_run / "evaluation.json").read_text())
    one = stored["directions"]["audio-visual"]["without_partner"]
    both = [direction["without_partner"]["map"] for direction in stored["directions"].values()]
    mean = sum(both) / len(both)
    code, out, err = aadml("audit", small_run)
    assert code == 0, err
    assert f"over the full gallery, own clips included ({mean:.5f} without them)" in out
    assert out.splitlines()[-1].startswith("inference passed, training unknown; ")
    card = (small_run / "README.md").read_text()
    assert "Every query ranks the full gallery, its own clip included." in card
    assert f"| {one['map']:.4f} (chance {one['chance']:.4f}) |" in card
    code, _, err = aadml("report", small_run)
    assert code == 0, err
    assert f"including its own clip (MAP {mean:.3f} without that clip)" in (small_run / "report.html").read_text()
