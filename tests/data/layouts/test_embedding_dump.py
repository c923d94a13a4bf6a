import numpy as np

from aadml.data.reading import open_data


def test_an_embedding_dump_is_all_test_and_says_what_it_took_for_what(write_h5):
    path = write_h5(featN1=np.ones((3, 2)), featN2=np.ones((3, 5)), testLs=np.asarray([1, 2, 1]))
    content = open_data(path)
    assert content.splits == ("test",) * 3
    assert content.features["audio"].shape == (3, 2)
    assert "does not name the modalities" in content.provenance["audio"]["notes"][0]
    assert open_data(write_h5(x=np.ones(3), featN1=np.ones((3, 2)), featN2=np.ones((3, 5)),
                              testLs=np.asarray([1, 2, 1]))).notes()[1:] == ("arrays were left out: x",)  # fmt: skip
    assert open_data(path, audio="featN2", visual="featN1").features["audio"].shape == (3, 5)
