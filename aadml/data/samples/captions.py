"""Captions of a sample clip: five different sentences, all of them true of the clip."""

import csv
from functools import cache
from pathlib import Path

import numpy as np

from aadml.data.samples.setting import ClipTraits

CAPTIONS = 5
"""Number of captions of a clip."""


_VOCABULARY = Path(__file__).with_name("vocabulary.csv")


@cache
def vocabularies() -> dict[str, dict[str, list[str]]]:
    """Return the phrases of each event by their kind, from `vocabulary.csv`, where " | " separates phrases.

    The kinds are:
        "seen": noun phrases for the picture, with {color} in place of the color.
        "does": verb phrases in the third person.
        "sounds": nouns for the sounds, in the plural.
        "heard": noun phrases for the event as a sound.
        "faint": one noun phrase for the event as a background sound.
    """
    with _VOCABULARY.open(encoding="utf-8", newline="") as lines:
        return {row.pop("event"): {kind: c.split(" | ") for kind, c in row.items()} for row in csv.DictReader(lines)}


_PACES = (("slow", "slowly"), ("steady", "at a medium pace"), ("fast", "quickly"))
_PITCHES = ("low", "medium", "high")
_SIDES = {"left": "on the left", "middle": "in the middle", "right": "on the right"}
_NOISES = {"hiss": "hissing", "rumble": "rumbling", "hum": "humming", "chatter": "murmuring"}


def write_captions(setting: ClipTraits, generator: np.random.Generator) -> tuple[str, ...]:
    """Return five different captions of a clip.

    Each caption states the event and some of pace, pitch, color, position, background noise and a second sound.

    Args:
        setting: the traits of the clip.
        generator: source of the randomness.
    """
    sentences = list(dict.fromkeys(_sentences(setting, generator)))
    chosen = generator.permutation(len(sentences))[:CAPTIONS]
    return tuple(f"{sentences[number][0].upper()}{sentences[number][1:]}." for number in chosen.tolist())


def _sentences(setting: ClipTraits, generator: np.random.Generator) -> list[str]:
    words = vocabularies()[setting.label]

    def pick(kind: str) -> str:
        return words[kind][int(generator.integers(len(words[kind])))]

    def seen() -> str:
        return _article(pick("seen").format(color=setting.scene.color))

    pace, manner = _PACES[_third(setting.scene.tempo)]
    pitch, side = _PITCHES[_third(setting.scene.pitch)], _SIDES[setting.place]
    noise = _NOISES[setting.noise] if setting.noise_level > -16 else ""
    behind = f"over a {noise} background" if noise else f"at a {pitch} pitch"
    sentences = [
        f"{seen()} {pick('does')}; the {pick('sounds')} are {pace}",
        f"{side}, {seen()} {pick('does')}",
        f"the sound of {pick('heard')}, {pace} and {pitch}-pitched",
        f"{pace}, {pitch}-pitched {pick('sounds')} of {pick('heard')}",
        f"{pick('heard')} is heard " + (f"through {noise} noise" if noise else f"{side} of the picture"),
        f"{pick('heard')} {behind}",
        f"{seen()} {side}; one hears {pace} {pick('sounds')}",
        f"{pitch}-pitched {pick('sounds')} come {manner} from {pick('heard')}",
    ]
    if setting.heard is not None and setting.heard.strength > -12:
        sentences.append(f"{pick('heard')}, and in the background {vocabularies()[setting.heard.label]['faint'][0]}")
    return sentences


def _third(share: float) -> int:
    return min(int(3 * share), 2)


def _article(phrase: str) -> str:
    return f"an{phrase[1:]}" if phrase.startswith("a ") and phrase[2] in "aeio" else phrase
