"""Pretrained networks of every family: what the command line extracts is what `transformers` gives."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.hub.families import FAMILIES
from aadml.feature_extraction.hub.windows import cut
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Frames, Limits, Sound
from tests.feature_extraction.hub.direct import DIRECT
from tests.feature_extraction.hub.tiny import NETWORKS

TEXTS = ["a dog barks", "rain falls on the old tin roof and someone is clapping loudly near by while a dog barks"]
LENGTHS = [1.4, 5.3]
FRAMES = Frames(frames_per_second=2.0)
CASES = [(name, modality) for name, (_, modalities) in NETWORKS.items() for modality in modalities]


@pytest.fixture(scope="session")
def manifest(render, tmp_path_factory):
    """Two real clips of other lengths, with a caption each."""
    folder = tmp_path_factory.mktemp("clips")
    rows = []
    for number, (text, seconds) in enumerate(zip(TEXTS, LENGTHS, strict=True)):
        render(folder / f"{number}.mkv", seconds=seconds, tone=300.0 + 400 * number, codecs=("ffv1", "pcm_s16le"),
               size=(64, 48) if number else (48, 72))  # fmt: skip
        rows.append([f"clip{number}", f"{number}.mkv", "x", "train", text])
    with (folder / "manifest.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "media", "label", "split", "caption"], *rows])
    return folder / "manifest.csv"


def test_every_family_of_the_table_is_tried():
    untried = {"clip_vision_model", "clip_text_model"}  # the towers of clip, saved alone
    tried = {name.removesuffix(" fused").removesuffix(" of today") for name in NETWORKS if name != "sentence encoder"}
    assert tried == set(FAMILIES) - untried - {"pe_video"}  # needs timm: see test_pictures
    assert set(DIRECT) == {case for case in CASES if case[0] != "pe_audio_video"}


def expected(name, modality, folder, media, text, parameters):
    """What direct calls give for each window, frame or text."""
    if name == "pe_audio_video":  # has the weights of pe_audio
        name, folder = "pe_audio", folder.with_name("pe_audio")
    if modality == "text":
        return DIRECT[name, modality](folder, [text])
    if modality == "visual":
        return DIRECT[name, modality](folder, decode(str(media), FRAMES, Limits(), 0.0).values)
    rate = parameters["processor"]["sampling_rate"]
    samples = decode(str(media), Sound(rate), Limits(), 0.0).values
    window = round(parameters["window"] * rate)
    return DIRECT[name, modality](folder, cut(samples, window, window))


def sets():
    """Runs of up to three modalities, so that each family is extracted once."""
    waiting = {m: [name for name, modality in CASES if modality == m] for m in ("audio", "visual", "text")}
    while any(waiting.values()):
        yield {modality: names.pop(0) for modality, names in waiting.items() if names}


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(one, marks=[] if number < 3 or "vjepa2" in one.values() else [pytest.mark.slow])
        for number, one in enumerate(sets())
    ],
    ids=lambda one: "-".join(one.values()),
)
def test_the_command_line_gives_what_direct_calls_give(chosen, network, manifest, tmp_path):
    output = tmp_path / "f.h5"
    names = {m: f"hf:{network(chosen[m])}" if m in chosen else "none" for m in ("audio", "visual", "text")}
    line = ["extract", manifest, "-o", output, "--workers", 1, *(part for m in names for part in (f"--{m}", names[m]))]
    more = ["--set", "visual.frames_per_second=2.0"] if "visual" in chosen else []
    done = CliRunner().invoke(cli, [str(part) for part in [*line, *more]], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    content = read_features(output)
    for modality, name in chosen.items():
        origin = content.provenance[modality]
        for row, text in enumerate(TEXTS):
            media = manifest.parent / f"{row}.mkv"
            network("pe_audio")
            wanted = expected(name, modality, network(name), media, text, origin["parameters"])
            np.testing.assert_allclose(content.features[modality][row], wanted.mean(axis=0), atol=1e-5)


def test_a_text_that_fills_aimv2_is_causal_too(network):
    text = " ".join([TEXTS[1]] * 4)
    (row,) = extractor(f"hf:{network('aimv2')}", "text").describe([np.frombuffer(text.encode(), dtype=np.uint8)])
    shortened = " ".join(text.split()[:38])  # and two special tokens, of 40 positions
    np.testing.assert_allclose(row, DIRECT["aimv2", "text"](network("aimv2"), [shortened]), atol=1e-5)
