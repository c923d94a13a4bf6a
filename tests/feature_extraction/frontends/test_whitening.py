import io
import tarfile

import numpy as np
import pytest
from sklearn.decomposition import PCA

from aadml.feature_extraction.frontends.quantization import dequantize, quantize
from aadml.feature_extraction.frontends.whitening import (
    PcaWhitening,
    Whitening,
    fit_whitening,
    vggish_pca,
    youtube8m_whitening,
)
from aadml.feature_extraction.ground.errors import InputError


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, d)) @ generator.normal(size=(d, d)) + generator.normal(size=d)


def test_equals_the_whitening_of_scikit_learn_up_to_signs():
    train, test = rows(300, 20), rows(50, 20, seed=1)
    ours = fit_whitening([train], 8, epsilon=0.0)
    theirs = PCA(8, whiten=True, svd_solver="full").fit(train)
    np.testing.assert_allclose(ours.variance, theirs.explained_variance_, rtol=1e-9)
    signs = np.sign((ours.components * theirs.components_.T).sum(0))
    np.testing.assert_allclose(ours.transform(test), theirs.transform(test) * signs, rtol=1e-4, atol=1e-5)


def test_blocks_of_any_size_give_the_fit_of_the_whole():
    train = rows(300, 12) + 100.0
    whole = fit_whitening([train], 5)
    parts = fit_whitening((train[i : i + n] for i, n in [(0, 1), (1, 0), (1, 99), (100, 200)]), 5)
    np.testing.assert_allclose(parts.transform(train), whole.transform(train), rtol=1e-6, atol=1e-6)


def test_more_rows_than_one_block_holds_give_the_fit_of_the_whole():
    train = rows(9000, 6) + 100.0
    whole = fit_whitening([train], 3, epsilon=0.0)
    parts = fit_whitening(np.split(train, 900), 3, epsilon=0.0)
    _, values, vectors = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)
    for found in (whole, parts):
        np.testing.assert_allclose(found.variance, values[:3] ** 2 / 8999, rtol=1e-9)
        np.testing.assert_allclose(np.abs((found.components * vectors[:3].T).sum(axis=0)), 1.0, rtol=1e-9)


def test_training_rows_come_out_uncorrelated_with_unit_variance():
    train = rows(500, 10)
    white = fit_whitening([train], 10, epsilon=0.0).transform(train)
    np.testing.assert_allclose(np.cov(white.T), np.eye(10), atol=1e-5)


def test_too_few_training_frames_are_an_error_that_suggests_all_dimensions():
    with pytest.raises(
        InputError, match=r"1,023 training frames, but at least 1,024 are needed; .*set reduction to none"
    ):
        fit_whitening([np.zeros((1000, 1100)), np.zeros((23, 1100))], 1024)


def test_a_row_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="NaN or infinity"):
        fit_whitening([np.array([[1.0, np.nan], [0.0, 1.0]])], 1)


def test_a_row_is_whitened_by_itself():
    train = rows(100, 16).astype(np.float32)
    whitening = fit_whitening([train], 8)
    together = whitening.transform(train)
    alone = np.concatenate([whitening.transform(train[i : i + 1]) for i in range(len(train))])
    np.testing.assert_allclose(alone, together, rtol=1e-6, atol=1e-6)


def test_its_arrays_rebuild_it():
    whitening = fit_whitening([rows(50, 6)], 3)
    again = Whitening.of_arrays(whitening.arrays())
    np.testing.assert_allclose(again.transform(rows(5, 6)), whitening.transform(rows(5, 6)), rtol=1e-4, atol=1e-5)


def youtube8m_archive(path, **changes):
    generator = np.random.default_rng(3)
    arrays = {
        "mean": generator.normal(size=(12, 1)),
        "eigenvals": generator.uniform(size=(8, 1)),
        "eigenvecs": generator.normal(size=(8, 12)),
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array.astype(np.float32))
            data = changes.get(name, content.getvalue())
            member = tarfile.TarInfo(f"./pca/{name}.npy")
            member.size = len(data)
            if data:
                archive.addfile(member, io.BytesIO(data))
    return arrays


def test_reads_the_matrices_of_youtube_8m_from_their_archive(tmp_path):
    arrays = youtube8m_archive(tmp_path / "yt8m_pca.tgz")
    x = np.random.default_rng(4).normal(size=(5, 12)).astype(np.float32)
    expected = (x - arrays["mean"][:, 0]) @ arrays["eigenvecs"].T[:, :6] / np.sqrt(arrays["eigenvals"][:6, 0] + 1e-4)
    whitening = youtube8m_whitening(tmp_path / "yt8m_pca.tgz", 6)
    np.testing.assert_allclose(whitening.transform(x), expected, rtol=1e-4, atol=1e-5)


def test_matrices_that_are_missing_or_misshapen_are_named(tmp_path):
    youtube8m_archive(tmp_path / "f.tgz")
    with pytest.raises(InputError, match=r"k at least 1024"):
        youtube8m_whitening(tmp_path / "f.tgz")
    youtube8m_archive(tmp_path / "f.tgz", eigenvals=b"")
    with pytest.raises(InputError, match=r"contains no eigenvals.npy"):
        youtube8m_whitening(tmp_path / "f.tgz", 6)
    youtube8m_archive(tmp_path / "f.tgz", eigenvals=b"junk")
    with pytest.raises(InputError, match=r"eigenvals.npy cannot be read"):
        youtube8m_whitening(tmp_path / "f.tgz", 6)


def test_the_pca_of_vggish_is_its_formula_row_by_row():
    generator = np.random.default_rng(5)
    vectors, means, x = (
        generator.normal(size=(128, 128)),
        generator.normal(size=(128, 1)),
        generator.normal(size=(4, 128)),
    )
    expected = np.stack([vectors @ (row - means[:, 0]) for row in x])
    np.testing.assert_allclose(vggish_pca(x, vectors, means), expected, rtol=1e-4, atol=1e-5)


def test_a_tar_whose_header_counts_beyond_all_bounds_is_one_line(tmp_path):
    header = tarfile.TarInfo("header")
    header.type, content = tarfile.XHDTYPE, b"99999999999999999999 mtime=0\n"
    header.size = len(content)
    path = tmp_path / "matrices.tar"
    path.write_bytes(header.tobuf(tarfile.USTAR_FORMAT) + content.ljust(512, b"\0") + bytes(1024))
    with pytest.raises(InputError, match=r"matrices\.tar: mean\.npy cannot be read \(.*(too large|not be opened)"):
        youtube8m_whitening(path, 2)


def test_a_matrix_in_a_tar_that_declares_more_than_is_there_is_one_line(tmp_path):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)})
    member = tarfile.TarInfo("mean.npy")
    member.size = content.tell()
    content.seek(0)
    path = tmp_path / "matrices.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(member, content)
    with pytest.raises(InputError, match=r"mean\.npy cannot be read \(it declares float64"):
        youtube8m_whitening(path, 2)


def test_the_epsilon_of_youtube_8m_is_stored_and_eight_bits_are_an_option():
    train = rows(60, 6).astype(np.float32)
    arrays = PcaWhitening(3).arrays([train])
    assert {name: values.shape for name, values in arrays.items()} == {
        "mean": (6,), "components": (6, 3), "variance": (3,), "epsilon": (1,)
    }  # fmt: skip
    assert arrays["epsilon"] == np.float32(1e-4)
    assert (arrays["components"][np.abs(arrays["components"]).argmax(0), range(3)] > 0).all()
    white = Whitening.of_arrays(arrays).transform(train)
    np.testing.assert_array_equal(PcaWhitening(3).transformation(arrays)(train), white)
    coarse = PcaWhitening(3, eight_bit=True).transformation(arrays)(train)
    np.testing.assert_array_equal(coarse, dequantize(quantize(white, rounding="nearest")))


@pytest.mark.parametrize(("count", "least"), [(1, 2), (3, 4)])
def test_as_many_rows_as_dimensions_are_needed_and_two_at_least(count, least):
    with pytest.raises(InputError, match=f"there are {count} training frames, but at least {least} are"):
        fit_whitening([rows(count, 5)], 1 if count == 1 else 4)
    assert fit_whitening([rows(least, 5)], least // 2).variance.shape == (least // 2,)
    with pytest.raises(InputError, match="PCA to 6 dimensions: the features have only 5 dimensions; choose at most 5"):
        fit_whitening([rows(9, 5)], 6)
