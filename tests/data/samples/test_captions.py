from dataclasses import replace

import numpy as np
import pytest

from aadml.data.samples.captions import CAPTIONS, vocabularies, write_captions
from aadml.data.samples.events import EVENTS
from aadml.data.samples.scene import COLORS
from aadml.data.samples.setting import draw_setting

SIDES = {"left": "on the left", "middle": "in the middle", "right": "on the right"}
NOISES = {"hiss": "hissing", "rumble": "rumbling", "hum": "humming", "chatter": "murmuring"}
PACES = ("slow", "steady", "fast")
PITCHES = ("low-", "medium-", "high-")


def settings(label, count=40):
    return [draw_setting(label, 2.0, np.random.default_rng(seed)) for seed in range(count)]


@pytest.mark.parametrize("label", EVENTS)
def test_every_event_has_five_different_sentences(label):
    for seed, setting in enumerate(settings(label)):
        captions = write_captions(setting, np.random.default_rng(seed))
        assert len(captions) == len(set(captions)) == CAPTIONS
        assert all(caption[0].isupper() and caption.endswith(".") and "{" not in caption for caption in captions)


@pytest.mark.parametrize("label", EVENTS)
def test_what_a_caption_says_is_true_of_the_clip(label):
    for seed, setting in enumerate(settings(label)):
        for caption in write_captions(setting, np.random.default_rng(seed)):
            words = caption.lower()
            assert all(name == setting.scene.color for name in COLORS if f" {name} " in words)
            assert all(name == setting.place for name, phrase in SIDES.items() if phrase in words)
            assert all(name == setting.noise for name, word in NOISES.items() if word in words)
            third = min(int(3 * setting.scene.tempo), 2)
            said = words.replace("slowly", "slow").replace("quickly", "fast").replace("at a medium pace", "steady")
            assert all(number == third for number, pace in enumerate(PACES) if f" {pace}" in f" {said}")
            third = min(int(3 * setting.scene.pitch), 2)
            assert all(number == third for number, pitch in enumerate(PITCHES) if pitch in words)
            if "in the background" in words:
                assert setting.heard is not None
                assert words.endswith(f"in the background {vocabularies()[setting.heard.label]['faint'][0]}.")


def test_the_captions_of_a_clip_stay_the_same():
    assert write_captions(settings("bird")[1], np.random.default_rng(1)) == (
        "On the left, a small red bird on a branch sings with an open beak.",
        "Steady, high-pitched whistled notes of birdsong.",
        "A red bird chirps; the whistled notes are steady.",
        "A small red bird on a branch on the left; one hears steady tweets.",
        "A bird is heard through murmuring noise.",
    )


@pytest.mark.parametrize(("level", "strength", "named"), [(-16.0, -12.0, False), (-15.9, -11.9, True)])
def test_faint_sounds_are_not_named(level, strength, named):
    setting = settings("bird")[1]
    setting = replace(setting, noise_level=level, heard=replace(setting.heard, strength=strength))
    captions = " ".join(c for seed in range(20) for c in write_captions(setting, np.random.default_rng(seed)))
    assert ["murmuring" in captions, "in the background" in captions] == [named, named]


def test_captions_of_one_event_are_varied():
    captions = [
        c for s, setting in enumerate(settings("bird")) for c in write_captions(setting, np.random.default_rng(s))
    ]
    assert len(set(captions)) > 0.7 * len(captions)
