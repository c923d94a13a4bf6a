"""Captions of a sample clip: five different sentences, all of them true of the clip."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from aadml.data.samples.setting import Setting

CAPTIONS = 5
"""Number of captions of a clip."""


_VOCABULARY = Path(__file__).with_name("vocabulary.csv")


@dataclass(frozen=True)
class _Vocabulary:
    """Phrases about one event.

    Args:
        seen: noun phrases for its picture; {color} stands for its color.
        does: verb phrases, third person.
        sounds: nouns for its sounds, in the plural.
        heard: noun phrases for the event as a sound.
        faint: one noun phrase for the event as a background sound.
    """

    seen: tuple[str, ...]
    does: tuple[str, ...]
    sounds: tuple[str, ...]
    heard: tuple[str, ...]
    faint: tuple[str, ...]


@cache
def vocabularies() -> dict[str, _Vocabulary]:
    """Return event -> its phrases, from `vocabulary.csv`, where " | " separates phrases."""
    with _VOCABULARY.open(encoding="utf-8", newline="") as lines:
        return {
            event: _Vocabulary(*[tuple(cell.split(" | ")) for cell in cells])
            for event, *cells in list(csv.reader(lines))[1:]
        }


_PACES = (("slow", "slowly"), ("steady", "at a medium pace"), ("fast", "quickly"))
_PITCHES = ("low", "medium", "high")
_SIDES = {"left": "on the left", "middle": "in the middle", "right": "on the right"}
_NOISES = {"hiss": "hissing", "rumble": "rumbling", "hum": "humming", "chatter": "murmuring"}


def write_captions(setting: Setting, generator: np.random.Generator) -> tuple[str, ...]:
    """Return five different captions of a clip.

    Each caption names the event and some of its pace, pitch, color, place, background noise and a second sound.

    Args:
        setting: the traits of the clip.
        generator: draws the sentences.
    """
    sentences = list(dict.fromkeys(_sentences(setting, generator)))
    chosen = generator.permutation(len(sentences))[:CAPTIONS]
    return tuple(f"{sentences[number][0].upper()}{sentences[number][1:]}." for number in chosen.tolist())


def _sentences(setting: Setting, generator: np.random.Generator) -> list[str]:
    words = vocabularies()[setting.label]

    def pick(choices: tuple[str, ...]) -> str:
        return choices[int(generator.integers(len(choices)))]

    def seen() -> str:
        return _article(pick(words.seen).format(color=setting.scene.color))

    pace, manner = _PACES[_third(setting.scene.tempo)]
    pitch, side = _PITCHES[_third(setting.scene.pitch)], _SIDES[setting.place]
    noise = _NOISES[setting.noise] if setting.noise_level > -16 else ""
    behind = f"over a {noise} background" if noise else f"at a {pitch} pitch"
    sentences = [
        f"{seen()} {pick(words.does)}; the {pick(words.sounds)} are {pace}",
        f"{side}, {seen()} {pick(words.does)}",
        f"the sound of {pick(words.heard)}, {pace} and {pitch}-pitched",
        f"{pace}, {pitch}-pitched {pick(words.sounds)} of {pick(words.heard)}",
        f"{pick(words.heard)} is heard " + (f"through {noise} noise" if noise else f"{side} of the picture"),
        f"{pick(words.heard)} {behind}",
        f"{seen()} {side}; one hears {pace} {pick(words.sounds)}",
        f"{pitch}-pitched {pick(words.sounds)} come {manner} from {pick(words.heard)}",
    ]
    if setting.heard is not None and setting.heard.strength > -12:
        sentences.append(f"{pick(words.heard)}, and in the background {vocabularies()[setting.heard.label].faint[0]}")
    return sentences


def _third(share: float) -> int:
    return min(int(3 * share), 2)


def _article(phrase: str) -> str:
    return f"an{phrase[1:]}" if phrase.startswith("a ") and phrase[2] in "aeio" else phrase
