"""Pretrained networks in front of methods of vectors: frozen, their projection, their last blocks, or all of them."""

import csv
import shutil
from dataclasses import replace
from importlib.metadata import version

import av
import h5py
import numpy as np
import pytest
import torch

import aadml
from aadml.configuration.from_arguments import assemble
from aadml.data.sources import media_files
from aadml.data.sources.array_cache import ArrayCache
from aadml.data.sources.loading import Loading
from aadml.data.sources.media_files import MediaFiles
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media import Frames
from aadml.methods import METHODS
from aadml.methods.towers import hub_input, tower_learner
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import FineTuning
from aadml.protocols.audit_checks import other_items, partner_blindness
from aadml.runs.data import load_splits
from aadml.runs.embed import embed_file
from aadml.runs.prepare import prepare

pytest.importorskip("transformers")

FROZEN = {"towers.train": []}


@pytest.fixture(scope="session")
def features(videos, networks, tmp_path_factory):
    """What extraction makes of the same videos by the same networks."""
    place = tmp_path_factory.mktemp("features") / "f.h5"
    names = {"audio": networks["wav2vec2"], "visual": networks["clip"], "text": networks["clip"]}
    aadml.extract(videos, place, **{m: f"hf:{name}" for m, name in names.items()}, workers=1)
    return place


def fitted(data, settings, **more):
    options = {"method": "pairs", "epochs": 1} | more
    return aadml.fit(data, settings=settings, device="cpu", **options)


def without_towers(settings):
    return {key: value for key, value in settings.items() if not key.startswith("towers")}


def paths(videos, numbers=range(24, 30)):
    return [str(videos.parent / f"{number}.mp4") for number in numbers]


@pytest.mark.parametrize("modality", ["audio", "visual", "text"])
def test_vectors_are_those_of_extraction_to_the_last_bit(videos, networks, features, modality):
    network = HubInput(f"hf:{networks['wav2vec2' if modality == 'audio' else 'clip']}", modality, FineTuning(), None)
    options = {f"towers.{modality}": "hf:any"}
    data = load_splits(assemble(data=str(videos), settings=options)).train
    found = network.describe(network.prepared(data[modality], Loading(memory=1 << 20)), stored=False)
    rows = read_features(features)
    assert bool(found[1].all())
    wanted = torch.from_numpy(rows.features[modality][rows.rows("train")])
    assert torch.equal(found[0], wanted)


@pytest.mark.parametrize(("method", "loss"), [("pairs", None), ("aadml", "aa-triplet"), ("clip", None)])
def test_frozen_networks_train_what_their_extracted_features_train(videos, features, settings, method, loss):
    if method == "clip":
        settings = {"method.hidden": [8], **{k: v for k, v in settings.items() if not k.startswith("network")}}
    by_media = fitted(videos, settings | FROZEN, method=method, loss=loss)
    by_features = fitted(
        features, without_towers(settings) | {"modalities": ["audio", "visual"]}, method=method, loss=loss
    )
    test = aadml.read(features).test
    for modality in ("audio", "visual"):
        found = by_media.embed(**{modality: paths(videos)})
        np.testing.assert_allclose(found, by_features.embed(**{modality: test[modality].numpy()}), rtol=0, atol=1e-6)


def test_a_method_that_learns_beside_batches_is_saved_with_frozen_networks(videos, settings, tmp_path):
    small = {key: value for key, value in settings.items() if not key.startswith("network")}
    model = fitted(videos, small | FROZEN, method="few-labels")
    again = aadml.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.embed(visual=paths(videos)), model.embed(visual=paths(videos)))


def test_what_is_asked_for_is_trained_and_nothing_else(videos, settings, networks):
    asked = {"one": {"towers.train": ["visual"], "towers.blocks": 0}, "last": {"towers.blocks": 1}, "all": {}}
    found = {name: set() for name in asked}
    for name, options in asked.items():
        model = fitted(videos, settings | options)
        for modality, of in (("audio", "wav2vec2"), ("visual", "clip")):
            before = HubInput(f"hf:{networks[of]}", modality, FineTuning(), None).network.state_dict()
            after = model.method.learner.networks[modality].network.state_dict()
            found[name] |= {f"{modality} {key}" for key in after if not torch.equal(after[key], before[key])}
    parts = {key.rpartition(".")[0] for key in found["one"]}
    assert parts == {"visual vision_model.post_layernorm", "visual visual_projection"}
    assert any("layers.1" in key for key in found["last"])
    assert not any("layers.0" in key or "embed" in key for key in found["last"])
    assert any("patch_embedding" in key for key in found["all"])
    assert any("feature_extractor" in key for key in found["all"])


def test_networks_may_have_their_own_learning_rate(videos, settings, networks):
    before = HubInput(f"hf:{networks['clip']}", "visual", FineTuning(), None).network.state_dict()
    unchanged = {}
    for rate in (None, 0.0):
        learner = fitted(videos, settings | {"towers.learning_rate": rate}).method.learner
        after = learner.networks["visual"].network.state_dict()
        unchanged[rate] = all(torch.equal(value, after[key]) for key, value in before.items())
    assert unchanged == {None: False, 0.0: True}


def test_training_computes_the_vectors_of_frozen_networks_once(videos, settings, monkeypatch):
    first = fitted(videos, settings | FROZEN)
    computed, real = [], HubInput._described
    monkeypatch.setattr(HubInput, "_described", lambda self, batch: computed.append(len(batch)) or real(self, batch))
    again = fitted(videos, settings | FROZEN)
    assert sum(computed) == 2 * 6  # sound and frames of the test clips, which are never read from the cache
    assert np.array_equal(again.embed(visual=paths(videos)), first.embed(visual=paths(videos)))
    assert sum(computed) == 2 * 6 + 2 * 6


def test_vectors_of_another_decoding_are_not_read(networks, monkeypatch):
    network = HubInput(f"hf:{networks['clip']}", "visual", FineTuning(), None)
    found = {network._fingerprint()}
    for change in (
        lambda: monkeypatch.setattr(Frames, "edition", 99),
        lambda: monkeypatch.setattr(hub_input, "decoder_versions", lambda: {"av": "0"}),
        lambda: setattr(network, "preparation", replace(network.preparation, minimum_seconds=9.0)),
        lambda: monkeypatch.setattr(hub_input, "version", lambda name: "0" if name == "pillow" else version(name)),
    ):
        change()
        found.add(network._fingerprint())
    assert len(found) == 5


def test_the_audit_computes_the_vectors_of_a_network_and_does_not_read_them(videos, settings, tmp_path, monkeypatch):
    fitted(videos, settings | FROZEN, runs=tmp_path / "run")
    describe = HubInput._described

    def leaky(self, batch):
        vectors = describe(self, batch)
        return vectors + vectors.mean(dim=0)

    monkeypatch.setattr(HubInput, "_described", leaky)
    failed = {finding.check for finding in aadml.audit(tmp_path / "run") if finding.failed}
    assert {"other items", "stored score"} <= failed


@pytest.mark.filterwarnings("default:.*silent[0-9]*.mp4. the file has no sound track")
def test_the_audit_passes_where_its_changes_leave_a_clip_neither_sound_nor_pictures(
    incomplete, settings, tmp_path, monkeypatch
):
    fitted(incomplete, settings | FROZEN, runs=tmp_path / "run")
    monkeypatch.setattr("aadml.runs.audit.CHECKS", (partner_blindness, other_items))  # clip 25 receives clip 24's files
    monkeypatch.setattr("secrets.randbits", lambda count: 5)
    report = aadml.audit(tmp_path / "run")
    assert [finding.check for finding in report if finding.failed] == []
    assert {"partner blindness", "other items"} <= {finding.check for finding in report}


def test_a_clip_is_embedded_as_if_it_were_alone(videos, settings):
    model = fitted(videos, settings)
    for modality in ("audio", "visual"):
        together = model.embed(**{modality: paths(videos)})
        alone = np.stack([model.embed(**{modality: path}) for path in paths(videos)])
        np.testing.assert_allclose(alone, together, rtol=0, atol=1e-6)


def test_sound_frames_and_words_meet_in_one_training(videos, settings, networks):
    model = fitted(videos, settings | {"towers.text": f"hf:{networks['clip']}"})
    assert model.modalities == ("audio", "visual", "text")
    assert model.embed(text="a dog barks").shape == (64,)


def test_a_video_that_cannot_be_decoded_costs_its_clip_and_is_named(videos, settings, tmp_path):
    folder = shutil.copytree(videos.parent, tmp_path / "videos")
    for number in (3, 27):
        (folder / f"{number}.mp4").write_bytes(b"nonsense" * 40)
    with pytest.warns(UserWarning, match=r"(3|27)\.mp4: the file was left out"):
        model = fitted(folder / "manifest.csv", settings)
    assert model.evaluation["directions"]["audio-visual"]["queries"] == 5
    test = load_splits(assemble(data=str(folder / "manifest.csv"), settings={"towers.visual": "hf:any"})).test
    with pytest.warns(UserWarning, match=r"27\.mp4: the file was left out"):
        found = model.method.embed_clips(test)
    assert len(found) == 5
    with pytest.raises(InputError, match=r"27\.mp4 cannot be decoded"):
        model.method.embed(test["visual"], "visual")


@pytest.fixture
def incomplete(videos, tmp_path):
    """The videos, some without a sound track, some without a file for frames, and clip 2 without any file."""
    rows = [["id", "audio", "visual", "label", "split"]]
    for number, row in enumerate(csv.DictReader(videos.read_text().splitlines())):
        path = str(videos.parent / row["media"])
        sound = silent(path, tmp_path / f"silent{number}.mp4") if number in (0, 18, 24) else path
        files = {2: ["", ""]}.get(number, [sound, "" if number in (1, 19, 25) else sound])
        rows.append([row["id"], *files, row["label"], row["split"]])
    with (tmp_path / "m.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return tmp_path / "m.csv"


def silent(path, place):
    with av.open(path) as source, av.open(str(place), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    return str(place)


@pytest.mark.filterwarnings("default:.*silent[0-9]*.mp4. the file has no sound track")
@pytest.mark.filterwarnings("default:.* clips lack sound or pictures")
@pytest.mark.parametrize(
    ("method", "loss", "tolerance", "left_out"),
    [
        ("pairs", None, 1e-5, []),
        (  # fits its scaling to complete clips
            "aadml",
            "aa-triplet",
            0.01,
            [
                f"1 of {count} clips lack sound or pictures and are left out, because this method needs all modalities"
                for count in (16, 5)
            ],
        ),
    ],
)
def test_clips_without_sound_or_pictures_train_as_their_extracted_features(
    incomplete, networks, settings, tmp_path, method, loss, tolerance, left_out
):
    names = {"audio": networks["wav2vec2"], "visual": networks["clip"]}
    aadml.extract(
        incomplete, tmp_path / "f.h5", **{m: f"hf:{name}" for m, name in names.items()}, workers=1, damaged="drop"
    )
    with pytest.warns(UserWarning, match=r"silent0\.mp4: the file has no sound track") as caught:
        by_media = fitted(incomplete, settings | FROZEN, method=method, loss=loss)
    messages = [str(warning.message) for warning in caught]
    assert [message for message in messages if "left out" in message] == left_out
    by_features = fitted(tmp_path / "f.h5", without_towers(settings), method=method, loss=loss)
    for name, value in by_features.method.state().items():
        torch.testing.assert_close(by_media.method.state()[f"inner.{name}"], value, rtol=0, atol=tolerance)
    embed_file(by_media, incomplete, tmp_path / "media.h5")
    embed_file(by_features, tmp_path / "f.h5", tmp_path / "features.h5")
    with h5py.File(tmp_path / "media.h5") as media, h5py.File(tmp_path / "features.h5") as features:
        kept = media["audio_present"][()] | media["visual_present"][()]
        for key in ("id", "audio_present", "visual_present"):
            np.testing.assert_array_equal(media[key][kept], features[key][()])
        assert media["id"].asstr()[~kept].tolist() == ["v2"]
    splits = load_splits(assemble(data=str(incomplete), settings=FROZEN | {"towers.audio": "hf:any"}))
    test = splits.test
    by_media.method.embed_clips(splits.train)
    with pytest.raises(InputError, match=r"^audio: \S*silent24\.mp4 cannot be decoded"):  # not those of `train`
        by_media.method.embed(test["audio"], "audio")
    together = by_media.method.embed_clips(test)
    for modality in test.modalities:
        alone = by_media.method.embed_clips(test.keeping([modality]))
        assert len(alone) == len(test)
        torch.testing.assert_close(alone.vectors[modality], together.vectors[modality])


@pytest.mark.filterwarnings("default:.*silent[0-9]*.mp4. the file has no sound track")
def test_trained_networks_skip_the_modality_that_a_clip_lacks(incomplete, settings):
    model = fitted(incomplete, settings | {"towers.blocks": 1})
    found = {name: direction["queries"] for name, direction in model.evaluation["directions"].items()}
    assert found == {"audio-visual": 5, "visual-audio": 5}
    assert all(np.isfinite(record["loss"]) for record in model.records())


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        ({"method": "cca"}, {}, "towers: cca is not trained by gradient steps on features"),
        ({"method": "acmr"}, {}, "towers: acmr trains encoders and modality_classifier with separate optimizers"),
        ({"method": "aadml", "loss": "daml-triplet"}, {}, "towers: aadml trains encoders and generator"),
        ({"method": "few-labels"}, {}, r"towers: few-labels also learns from clips outside its batch.*; freeze"),
        ({}, {"towers.audio": "clap"}, r"towers.audio is \"clap\"; pass hf:MODEL"),
        ({}, {"towers.audio": "hf:absent"}, "neither a folder nor a name"),
        ({}, {"towers.blocks": 9}, "blocks is 9, but the number of blocks of this network is 2; choose 0 to 2"),
        ({}, {"towers.train": ["sound"]}, "towers.train"),
        ({}, {"towers.audio": None, "towers.visual": None}, "towers: the section names no network"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(videos, settings, more, options, message):
    small = {key: value for key, value in settings.items() if not key.startswith("network")}
    with pytest.raises(InputError, match=message) as caught:
        fitted(videos, small | options, **more)
    assert "\n" not in str(caught.value)


def test_networks_are_not_trained_on_features(features, settings):
    with pytest.raises(InputError, match=r"networks \(towers\) are trained on media; pass a manifest"):
        fitted(features, settings)


def test_a_manifest_without_words_gives_none_to_a_text_network(videos, settings, networks, tmp_path):
    rows = [line[:4] for line in csv.reader(videos.read_text().splitlines())]
    with (tmp_path / "m.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(InputError, match=r"has no column for text; add a column, or leave towers.text out"):
        fitted(tmp_path / "m.csv", settings | {"towers.text": f"hf:{networks['clip']}"})


@pytest.fixture
def source(videos, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    files = tuple(paths(videos, range(3)))
    return lambda budget: MediaFiles(files, torch.tensor([0, 1, 2, 1]), Frames(2.0), cache=ArrayCache(budget))


def test_decoded_frames_are_kept_on_disk_by_content(source, monkeypatch):
    first = source(1 << 30).batch(torch.arange(4))
    monkeypatch.setattr(media_files, "decode", lambda *_: pytest.fail("decoded again"))
    again = source(1 << 30).batch(torch.arange(4))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    assert np.array_equal(again[1], again[3])


def test_a_damaged_file_of_the_cache_is_decoded_again(source, tmp_path):
    first = source(1 << 30).batch(torch.arange(3))
    for path in (tmp_path / "cache" / "decoded").iterdir():
        path.write_bytes(path.read_bytes()[:50])
    again = source(1 << 30).batch(torch.arange(3))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))


def test_the_cache_of_frames_ends_at_its_budget(source, tmp_path):
    one = source(0).batch(torch.tensor([0]))[0].nbytes
    assert not list((tmp_path / "cache").glob("decoded/*"))
    source(2 * one + 500).batch(torch.arange(3))
    assert len(list((tmp_path / "cache").glob("decoded/*"))) == 2
    source(2 * one + 500).batch(torch.arange(3))
    assert len(list((tmp_path / "cache").glob("decoded/*"))) == 2


def test_every_method_takes_networks_or_says_why_not(videos, settings, networks, monkeypatch):
    small = {k: v for k, v in settings.items() if k.startswith("towers")} | FROZEN
    made = {
        m: HubInput(f"hf:{networks[of]}", m, FineTuning(), None)
        for m, of in (("audio", "wav2vec2"), ("visual", "clip"))
    }
    monkeypatch.setattr(tower_learner, "_network", lambda modality, *_: made[modality].eval())
    refused = {}
    for name in METHODS:
        few = {"training.criterion": "map"} if name == "pairs" else {}  # its recall@10 needs more clips than these
        try:
            prepare(assemble(data=str(videos), method=name, settings=small | few))
        except InputError as refusal:
            refused[name] = str(refusal)
    assert refused.keys() == {"cca", "kcca", "c-cca", "random", "zero-shot", "agah", "acmr", "video-adviser-lite",
                              "audio-text", "3cmlf", "xie"}  # fmt: skip
    assert all(said.startswith(("towers: ", "zero-shot: ", "inputs.scaling: ")) for said in refused.values()), refused
