"""HDF5 files hold no times and no order of creation, so equal content gives equal bytes at any time."""

import dataclasses

import h5py
import numpy as np
import pytest

import aadml
from aadml.data.layouts.released import write_split_keys
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import Shard, Texts
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.media.fingerprints import SIZE
from aadml.runs.embed import embed_file
from tests.feature_extraction.contents import content

SMALL = synthetic(classes=2, train=8, valid=4, test=4, dimensions=(6, 8))


def every_part(path):
    plain = content()
    texts = Texts(np.ones((6, 2), np.float32), np.array([0, 0, 1, 2, 2, 3]))
    visual = plain.features["visual"].copy()
    visual[1] = 0
    full = dataclasses.replace(
        plain,
        features={**plain.features, "visual": visual, "text": texts.first_of_each(4)[0]},
        provenance={**plain.provenance, "text": {"extractor": "words"}},
        all_labels=np.eye(2, dtype=np.uint8)[plain.labels],
        present={"visual": np.array([True, False, True, True])},
        fingerprints={"audio": np.ones((4, SIZE), np.uint8)},
        shard=Shard(0, 2, 9, "abc", rows=np.array([0, 2, 4, 6])),
        texts=texts,
    )
    write_features(path, full)


def split_keys(path):
    write_split_keys(path, SMALL)


def embeddings(path):
    data = path.with_name("data.h5")
    write_features(data, SMALL)
    embed_file(aadml.fit(data, method="random"), data, path)


@pytest.mark.parametrize("write", [every_part, split_keys, embeddings])
def test_no_object_holds_times(tmp_path, write):
    write(tmp_path / "f.h5")
    with h5py.File(tmp_path / "f.h5") as file:
        objects = {"root": file["/"]}
        file.visititems(objects.__setitem__)
        assert not [name for name, item in objects.items() if item.id.get_create_plist().get_obj_track_times()]
    if write is every_part:
        assert {"column", "fitted/visual", "fingerprint", "shard", "text_row", "labels", "visual_present"} <= set(
            objects
        )


@pytest.mark.parametrize("write", [every_part, split_keys, embeddings])
def test_bytes_do_not_depend_on_the_configuration_of_h5py(tmp_path, write, monkeypatch):
    write(tmp_path / "plain.h5")
    monkeypatch.setattr(h5py.get_config(), "track_order", True)
    write(tmp_path / "ordered.h5")
    assert (tmp_path / "plain.h5").read_bytes() == (tmp_path / "ordered.h5").read_bytes()
