"""Captions of a sample clip: five different sentences, every one of them true of the clip."""

from dataclasses import dataclass

import numpy as np

from aadml.data.samples.setting import Setting

CAPTIONS = 5
"""How many captions a clip has."""


@dataclass(frozen=True)
class _Vocabulary:
    """How one event is spoken of.

    Args:
        seen: what is seen; {color} stands for its color.
        does: what it does, third person.
        sounds: what is heard, in the plural.
        heard: the event as one hears it, as a noun.
        faint: the event as something in the background.
    """

    seen: tuple[str, ...]
    does: tuple[str, ...]
    sounds: tuple[str, ...]
    heard: tuple[str, ...]
    faint: str


_WORDS: dict[str, _Vocabulary] = {
    "bouncing ball": _Vocabulary(
        ("a {color} ball", "a {color} rubber ball"),
        ("bounces on the floor", "hits the ground again and again", "jumps up and down"),
        ("thumps", "thuds", "dull knocks"),
        ("a bouncing ball", "a ball being bounced", "a ball that hits the floor"),
        "a ball bouncing",
    ),
    "metronome": _Vocabulary(
        ("a {color} metronome", "a {color} wooden metronome"),
        ("ticks from side to side", "beats time", "swings its arm and ticks"),
        ("ticks", "clicks", "even beats"),
        ("a metronome", "a ticking metronome", "a metronome that keeps the beat"),
        "a metronome ticking",
    ),
    "siren": _Vocabulary(
        ("a {color} beacon", "an emergency vehicle with a {color} light"),
        ("flashes while the siren sounds", "blinks as a siren wails", "lights up with every rise of the siren"),
        ("rising and falling tones", "alarm tones", "wailing tones"),
        ("a siren", "an emergency siren", "the alarm of a siren"),
        "a siren wailing",
    ),
    "rain": _Vocabulary(
        ("a {color} umbrella", "an open {color} umbrella"),
        ("stands in the rain", "is hit by raindrops", "keeps off the pouring rain"),
        ("raindrops", "drops of water", "splashes"),
        ("rain", "rain on an umbrella", "falling rain"),
        "rain falling",
    ),
    "engine": _Vocabulary(
        ("a {color} engine", "a {color} machine with a flywheel"),
        ("runs and turns its wheel", "spins a big wheel", "drives a turning wheel"),
        ("buzzing bursts", "rattling strokes", "mechanical pulses"),
        ("an engine", "a running engine", "a motor that runs"),
        "an engine running",
    ),
    "telephone keypad": _Vocabulary(
        ("a {color} telephone keypad", "the {color} keypad of a phone"),
        ("lights up key by key", "is used to dial a number", "beeps as the keys are pressed"),
        ("beeps", "dial tones", "touch tones"),
        ("a telephone being dialed", "a phone keypad", "keys pressed on a telephone"),
        "a telephone being dialed",
    ),
    "heartbeat": _Vocabulary(
        ("a {color} heart", "a {color} cartoon heart"),
        ("beats", "swells with every beat", "pounds"),
        ("double thumps", "heart sounds", "muffled beats"),
        ("a heartbeat", "a beating heart", "a heart heard through a stethoscope"),
        "a heart beating",
    ),
    "bird": _Vocabulary(
        ("a {color} bird", "a small {color} bird on a branch"),
        ("sings with an open beak", "chirps", "whistles its song"),
        ("chirps", "tweets", "whistled notes"),
        ("a bird", "a singing bird", "birdsong"),
        "a bird singing",
    ),
    "helicopter": _Vocabulary(
        ("a {color} helicopter", "a {color} chopper"),
        ("hovers with its blades turning", "flies in place", "beats the air with its rotor"),
        ("chopping beats", "rotor strokes", "throbbing bursts of air"),
        ("a helicopter", "a helicopter in flight", "the rotor of a helicopter"),
        "a helicopter flying",
    ),
    "typing": _Vocabulary(
        ("a {color} keyboard", "a computer with a {color} keyboard"),
        ("is being typed on", "writes lines of text", "clatters as someone types"),
        ("clicks of keys", "keystrokes", "taps"),
        ("someone typing", "typing on a keyboard", "a keyboard in use"),
        "someone typing",
    ),
}

_PACES = (("slow", "slowly"), ("steady", "at a medium pace"), ("fast", "quickly"))
_PITCHES = ("low", "medium", "high")
_SIDES = {"left": "on the left", "middle": "in the middle", "right": "on the right"}
_NOISES = {"hiss": "hissing", "rumble": "rumbling", "hum": "humming", "chatter": "murmuring"}


def write_captions(setting: Setting, generator: np.random.Generator) -> tuple[str, ...]:
    """Return five different captions of a clip.

    Each names the event; each adds some of its pace, pitch, color, place, background noise and what else is heard.

    Args:
        setting: what was drawn for the clip.
        generator: which of the possible sentences are taken.
    """
    sentences = list(dict.fromkeys(_sentences(setting, generator)))
    chosen = generator.permutation(len(sentences))[:CAPTIONS]
    return tuple(_capital(sentences[int(number)]) for number in chosen)


def _sentences(setting: Setting, generator: np.random.Generator) -> list[str]:
    words = _WORDS[setting.label]

    def one(choices: tuple[str, ...]) -> str:
        return choices[int(generator.integers(len(choices)))]

    def seen() -> str:
        return _article(one(words.seen).format(color=setting.scene.color))

    pace, manner = _PACES[_third(setting.scene.tempo)]
    pitch, side = _PITCHES[_third(setting.scene.pitch)], _SIDES[setting.place]
    noise = _loud_noise(setting)
    behind = f"over a {noise} background" if noise else f"at a {pitch} pitch"
    sentences = [
        f"{seen()} {one(words.does)}; the {one(words.sounds)} are {pace}",
        f"{side}, {seen()} {one(words.does)}",
        f"the sound of {one(words.heard)}, {pace} and {pitch}-pitched",
        f"{pace}, {pitch}-pitched {one(words.sounds)} of {one(words.heard)}",
        f"{one(words.heard)} is heard " + (f"through {noise} noise" if noise else f"{side} of the picture"),
        f"{one(words.heard)} {behind}",
        f"{seen()} {side}; one hears {pace} {one(words.sounds)}",
        f"{pitch}-pitched {one(words.sounds)} come {manner} from {one(words.heard)}",
    ]
    if setting.heard is not None and setting.heard.strength > -12:
        sentences.append(f"{one(words.heard)}, and in the background {_WORDS[setting.heard.label].faint}")
    return sentences


def _third(share: float) -> int:
    return min(int(3 * share), 2)


def _loud_noise(setting: Setting) -> str:
    return _NOISES[setting.noise] if setting.noise_level > -16 else ""


def _article(phrase: str) -> str:
    return f"an{phrase[1:]}" if phrase.startswith("a ") and phrase[2] in "aeio" else phrase


def _capital(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}."
