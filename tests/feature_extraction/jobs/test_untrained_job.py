"""A whole job with the published networks' shapes, without any weight file."""

import json

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from aadml.cli import cli


@pytest.mark.slow
def test_untrained_networks_run_to_the_end_and_are_called_untrained_in_file_and_log(tmp_path, render):
    rows = ["id,media,label,split"]
    for number in range(3):
        render(tmp_path / f"{number}.mp4", seconds=0.6 + number, tone=200.0 * (number + 1))
        rows.append(f"{number},{number}.mp4,{number % 2},train")
    (tmp_path / "m.csv").write_text("\n".join(rows))
    words = ["extract", tmp_path / "m.csv", "-o", tmp_path / "f.h5", "--audio", "vggish", "--visual", "inception-v3"]
    words += ["--weights", "untrained", "--workers", 1, "--sequence"]
    result = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0
    assert "vggish is UNTRAINED" in result.stderr
    assert "inception-v3 is UNTRAINED" in result.stderr
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["audio"].shape == (3, 128)
        assert file["visual"].shape == (3, 2048)
        np.testing.assert_array_equal(np.diff(file["audio_offsets"][:]), [1, 1, 2])
        np.testing.assert_array_equal(np.diff(file["visual_offsets"][:]), [1, 2, 3])
        for modality in ("audio", "visual"):
            provenance = json.loads(file[modality].attrs["provenance"])
            assert provenance["parameters"]["weights"] == "untrained"
            assert np.isfinite(file[modality][:]).all()
            assert len(np.unique(file[modality][:], axis=0)) > 1
