"""EVENTS: the ten everyday events of the sample clips; each renders its sound and its picture from one timeline."""

from collections.abc import Callable

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter, mixed
from aadml.data.samples.scene import Event, Scene, beats, since
from aadml.data.samples.sound import RATE, Signal, click, hiss, lay, oscillate, strike, time_axis

_ROWS = (697.0, 770.0, 852.0, 941.0)
_COLUMNS = (1209.0, 1336.0, 1477.0)
_KEYS = tuple((row, column) for row in range(3) for column in range(8))


def bouncing_ball(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a ball that hits the floor 1.5 to 4 times a second.

    Each contact with the floor is a thump.
    """
    period = 1 / scene.between(1.5, 4.0)
    phase = period * generator.uniform(0.05, 0.95)
    height = 0.55 + 0.75 * (1 - scene.tempo) * generator.uniform(0.7, 1.0)
    drift, radius = generator.uniform(-0.5, 0.5), generator.uniform(0.26, 0.36)
    frequency = scene.tone(70, 240)
    hits = [phase + number * period for number in range(-1, int(scene.seconds / period) + 1)]
    thumps = [
        (hit, generator.uniform(0.7, 1.0) * strike(frequency, 0.22, drop=0.45) + _slap(generator, frequency))
        for hit in hits
    ]

    def draw(picture: Picture, time: float) -> None:
        share = ((time - phase) / period) % 1.0
        lift = height * (1 - (2 * share - 1) ** 2)
        squash = max(0.0, 1 - lift / 0.12) * 0.35
        x = drift * float(np.sin(1.3 * time + phase))
        y = 0.8 - lift - radius * (1 - squash)
        picture.oval(x, 0.84, radius * (1.2 - 0.4 * lift), 0.06, (45, 45, 45))
        picture.oval(x, y, radius * (1 + squash), radius * (1 - squash), darker(scene.paint))
        picture.oval(x - 0.02, y - 0.02, radius * (0.93 + squash), radius * (0.93 - squash), scene.paint)
        picture.disc(x - 0.35 * radius, y - 0.4 * radius, 0.2 * radius, lighter(scene.paint, 0.7))

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), thumps), draw)


def _slap(generator: np.random.Generator, frequency: float) -> Signal:
    slap = np.zeros_like(time_axis(0.22))
    return lay(slap, [(0.0, 0.35 * click(generator, 0.03, 4 * frequency, 16 * frequency))])


def metronome(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a metronome with 100 to 260 ticks a minute; every 2nd, 3rd or 4th tick is stressed.

    The metronome ticks whenever its arm turns back.
    """
    period = 60 / scene.between(100, 260)
    phase = period * generator.uniform(0.05, 0.95)
    swing, bob = generator.uniform(0.4, 0.65), generator.uniform(0.5, 0.95)
    frequency, stress = scene.tone(900, 2600), int(generator.integers(2, 5))
    length = generator.uniform(0.04, 0.08)
    ticks = []
    for number in range(-1, int(scene.seconds / period) + 1):
        tone = frequency * (1.25 if number % stress == 0 else 1.0)
        tick = 0.8 * strike(tone, length, decay=8) + 0.4 * click(generator, length, tone, 7500)
        ticks.append((phase + number * period, tick))

    def draw(picture: Picture, time: float) -> None:
        angle = swing * float(np.cos(np.pi * (time - phase) / period))
        picture.shape([(-0.28, -0.85), (0.28, -0.85), (0.62, 0.9), (-0.62, 0.9)], darker(scene.paint))
        picture.shape([(-0.22, -0.75), (0.22, -0.75), (0.5, 0.55), (-0.5, 0.55)], scene.paint)
        for row in range(6):
            picture.line(-0.08, -0.55 + 0.16 * row, 0.08, -0.55 + 0.16 * row, darker(scene.paint, 0.6), 0.03)
        arm = picture.leaning(angle, 0.0, 0.5)
        arm.line(0, 0, 0, -1.35, (225, 230, 235), 0.06)
        arm.shape([(-0.14, -bob - 0.1), (0.14, -bob - 0.1), (0.09, -bob + 0.12), (-0.09, -bob + 0.12)], (60, 60, 70))
        picture.box(-0.62, 0.55, 0.62, 0.9, lighter(darker(scene.paint), 0.1))

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), ticks), draw)


def siren(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a siren that wails or alternates between two tones, at 0.7 to 3 cycles a second.

    The light of a beacon flashes as the tone rises.
    """
    rate, phase = scene.between(0.7, 3.0), generator.uniform(0, 1)
    steps, ratio = bool(generator.random() < 0.5), generator.uniform(1.25, 1.7)
    low, edge = scene.tone(420, 1100), generator.uniform(0.1, 0.5)

    def height(time: Signal | float) -> Signal:
        wave = np.sin(2 * np.pi * (np.asarray(time) * rate + phase))
        return np.asarray(np.clip(6 * wave, -1, 1) / 2 + 0.5 if steps else wave / 2 + 0.5)

    tone = low * ratio ** height(time_axis(scene.seconds))
    sound = sum((edge**part * oscillate((part + 1) * tone, scene.seconds) for part in range(5)), np.zeros_like(tone))

    def draw(picture: Picture, time: float) -> None:
        light = float(height(time))
        picture.shape([(-0.95, 0.85), (-0.8, 0.3), (0.8, 0.3), (0.95, 0.85)], (120, 115, 110))
        picture.shape([(-0.7, 0.75), (-0.62, 0.42), (0.62, 0.42), (0.7, 0.75)], (70, 60, 50))
        picture.box(-0.42, 0.18, 0.42, 0.3, (60, 60, 60))
        lamp = mixed(darker(scene.paint, 0.6), lighter(scene.paint, 0.5), light)
        picture.shape([(-0.34, 0.2), (-0.28, -0.25), (-0.12, -0.4), (0.12, -0.4), (0.28, -0.25), (0.34, 0.2)], lamp)
        picture.oval(-0.12, -0.15, 0.05, 0.14, lighter(lamp, 0.5))
        if light > 0.15:
            picture.glow(0, -0.1, 1.5, lighter(scene.paint, 0.3), 0.85 * light)

    return Event(np.asarray(sound, dtype=np.float64), draw)


def rain(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of rain, with 8 to 40 big drops a second over a hiss.

    The rain falls on an umbrella, with a patter where the big drops hit.
    """
    rate, low = scene.between(8, 40), scene.tone(400, 2000)
    hits = np.sort(generator.uniform(0, scene.seconds, int(rate * scene.seconds)))
    places, louds = generator.uniform(-0.85, 0.85, hits.size), generator.uniform(0.4, 1.6, hits.size)
    patter = [
        (float(hit), float(loud) * click(generator, 0.03, low, min(4 * low, 7800)))
        for hit, loud in zip(hits, louds, strict=True)
    ]
    sound = lay(0.25 * hiss(generator, scene.seconds, low, 7800, tilt=generator.uniform(0.1, 0.5)), patter)
    streaks = generator.uniform(-1, 1, (int(18 + 40 * scene.tempo), 2))
    slant = generator.uniform(-0.25, 0.25)
    drop = (235, 215, 190)

    def draw(picture: Picture, time: float) -> None:
        for x, start in streaks:
            y = (start + 1 + 3.1 * time) % 2.2 - 1.1
            picture.line(x + slant * y, y, x + slant * (y + 0.2), y + 0.2, drop, 0.02)
        rim = [(0.9 * float(np.cos(a)), 0.15 - 0.75 * float(np.sin(a))) for a in np.linspace(0, np.pi, 20)]
        picture.shape(rim, scene.paint)
        picture.shape([(0.3 * x, y) for x, y in rim], lighter(scene.paint, 0.25))
        picture.line(0, 0.1, 0, 0.85, (50, 60, 80), 0.06)
        picture.line(0, 0.85, 0.16, 0.85, (50, 60, 80), 0.06)
        for hit, x in zip(hits, places, strict=True):
            top = 0.15 - 0.75 * float(np.sqrt(1 - (x / 0.9) ** 2))
            if 0 <= hit - time < 0.12:
                picture.line(x, top - 7 * (hit - time) - 0.18, x, top - 7 * (hit - time), drop, 0.05)
            elif 0 <= time - hit < 0.14:
                spread = 0.05 + 0.9 * (time - hit)
                picture.line(x, top, x - spread, top - 0.12, drop, 0.03)
                picture.line(x, top, x + spread, top - 0.12, drop, 0.03)
        picture.line(-0.9, 0.15, 0.9, 0.15, darker(scene.paint), 0.04)

    return Event(sound, draw)


def engine(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of an engine that fires at 22 to 75 Hz and turns a wheel 0.6 to 2.2 times a second.

    The firing rate rises with the speed of the wheel. Both rates are those at the nominal speed. The speed varies
    periodically by 5 to 35 percent.
    """
    turns, firing = scene.between(0.6, 2.2), scene.tone(22, 75)
    rev, rate, phase = generator.uniform(0.05, 0.35), generator.uniform(0.3, 1.2), generator.uniform(0, 2 * np.pi)
    spokes, rough = int(generator.integers(3, 7)), generator.uniform(0.1, 0.5)
    time = time_axis(scene.seconds)
    speed = 1 + rev * np.sin(2 * np.pi * rate * time + phase)
    turned = np.cumsum(speed) / RATE  # seconds at the mean speed
    cycle = 2 * np.pi * firing * turned
    tones = sum(np.sin(part * cycle + 0.7 * part**2) / part**0.7 for part in range(1, 16))
    breath = (0.5 + 0.5 * np.cos(cycle)) ** 3 * hiss(generator, scene.seconds, 150, 3500, tilt=0.5)

    def draw(picture: Picture, moment: float) -> None:
        angle = 2 * np.pi * turns * float(turned[min(int(moment * RATE), turned.size - 1)])
        shake = 0.012 * float(np.sin(40 * moment))
        picture.box(-0.95, 0.55 + shake, 0.95, 0.85, (75, 75, 75))
        picture.box(0.25, -0.45 + shake, 0.95, 0.6, darker(scene.paint))
        picture.box(0.32, -0.38 + shake, 0.88, 0.1, scene.paint)
        for rib in range(4):
            picture.line(0.32, 0.2 + 0.09 * rib + shake, 0.88, 0.2 + 0.09 * rib + shake, (60, 60, 60), 0.03)
        wheel = picture.leaning(angle, -0.3, 0.1)
        wheel.disc(0, 0, 0.62, (50, 50, 50))
        wheel.disc(0, 0, 0.5, lighter(scene.paint, 0.5))
        for spoke in range(spokes):
            wheel.leaning(2 * np.pi * spoke / spokes).line(0, 0, 0, -0.5, darker(scene.paint, 0.5), 0.1)
        wheel.disc(0, 0, 0.13, scene.paint)
        wheel.disc(0, -0.56, 0.05, (230, 230, 230))

    return Event(np.asarray(tones / 3 + rough * breath, dtype=np.float64), draw)


def telephone_keypad(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a keypad: 2 to 7 touch-tone signals a second (ITU-T Q.23), detuned by up to 18 %.

    Each key lights up while its two tones sound.
    """
    period, share = 1 / scene.between(2, 7), generator.uniform(0.45, 0.8)
    start, detuned = -period * generator.uniform(0.1, 0.9), scene.tone(0.85, 1.18)
    presses = [(start + number * period, *_key(generator)) for number in range(int(scene.seconds / period) + 2)]
    tones = [(time, _tone(row, column, share * period, detuned)) for time, row, column in presses]

    def draw(picture: Picture, time: float) -> None:
        lit = [(row, column) for begin, row, column in presses if 0 <= time - begin < max(share * period, 1 / 12)]
        picture.box(-0.66, -0.95, 0.66, 0.95, darker(scene.paint, 0.6))
        picture.box(-0.6, -0.89, 0.6, 0.89, darker(scene.paint, 0.25))
        for row in range(4):
            for column in range(3):
                x, y = 0.37 * (column - 1), 0.42 * (row - 1.5)
                on = (row, column) in lit
                paint = (110, 250, 255) if on else lighter(scene.paint, 0.6)
                picture.box(x - 0.15, y - 0.16, x + 0.15, y + 0.16, paint)
                picture.box(x - 0.05, y - 0.06, x + 0.05, y + 0.06, (40, 40, 40))
                if on:
                    picture.glow(x, y, 0.6, (120, 255, 255), 0.7)

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), tones), draw)


def _key(generator: np.random.Generator) -> tuple[int, int]:
    return int(generator.integers(4)), int(generator.integers(3))


def _tone(row: int, column: int, seconds: float, detuned: float) -> Signal:
    pair = oscillate(_ROWS[row] * detuned, seconds) + oscillate(_COLUMNS[column] * detuned, seconds)
    count = np.arange(pair.size)
    edge = np.minimum(np.minimum(count, count[::-1]) / (0.004 * RATE), 1.0)
    return np.asarray(pair * edge)


def heartbeat(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a heart at 55 to 170 beats a minute, as through a stethoscope.

    The heart swells with the first, deeper sound, and less with the second.
    """
    period = 60 / scene.between(55, 170)
    firsts = beats(generator, scene, period, jitter=0.04)
    gap = generator.uniform(0.28, 0.38) * period
    seconds = [first + gap for first in firsts]
    low, soft = scene.tone(55, 130), generator.uniform(0.4, 0.8)
    pieces = [(first, _beat(low)) for first in firsts] + [(second, soft * _beat(1.35 * low)) for second in seconds]
    murmur = generator.uniform(0.01, 0.06) * hiss(generator, scene.seconds, 60, 500, tilt=0.5)
    angle = np.linspace(0, 2 * np.pi, 40)
    outline = np.stack(
        [np.sin(angle) ** 3, -(13 * np.cos(angle) - 5 * np.cos(2 * angle) - 2 * np.cos(3 * angle)) / 16], axis=1
    )

    def draw(picture: Picture, time: float) -> None:
        swell = 1.0 * _bump(since(time, firsts)) + soft * _bump(since(time, seconds))
        size = 0.6 * (1 + 0.32 * min(swell, 1.0))
        for scale, paint in ((1.12, darker(scene.paint, 0.55)), (1.0, scene.paint)):
            picture.shape([(size * scale * float(x), size * scale * float(y)) for x, y in outline], paint)
        picture.oval(-0.42 * size, -0.4 * size, 0.14 * size, 0.2 * size, lighter(scene.paint, 0.6))

    return Event(lay(murmur * np.ones_like(time_axis(scene.seconds)), pieces), draw)


def _beat(frequency: float) -> Signal:
    return strike(frequency, 0.16, drop=0.3, decay=5) + 0.3 * strike(2.1 * frequency, 0.16, drop=0.3, decay=8)


def _bump(age: float) -> float:
    return float(np.exp(-age / 0.09)) if age < 1 else 0.0


def bird(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a bird that sings 2 to 7 sweeps a second, starting at 1.4 to 4.7 kHz.

    The bird sits on a branch, and its beak opens with every chirp.
    """
    period = 1 / scene.between(2, 7)
    starts = beats(generator, scene, period, jitter=0.15)
    length, base = period * generator.uniform(0.35, 0.7), scene.tone(1600, 4200)
    bend, wave = generator.uniform(-0.5, 0.6), generator.uniform(0, 0.12)
    chirps = [(start, _chirp(base * generator.uniform(0.9, 1.12), bend, wave, length)) for start in starts]
    facing = -1.0 if generator.random() < 0.5 else 1.0

    def draw(picture: Picture, time: float) -> None:
        gape = float(np.sin(np.pi * min(since(time, starts) / max(length, 1 / 8), 1.0)))
        bob = -0.05 * gape
        picture.line(-0.95, 0.72, 0.95, 0.62, (45, 70, 100), 0.1)
        for leg in (-0.08, 0.12):
            picture.line(leg, 0.4, leg, 0.68, (40, 90, 140), 0.04)
        picture.shape([(-0.4 * facing, 0.1), (-1.0 * facing, 0.42), (-0.9 * facing, 0.15)], darker(scene.paint))
        picture.oval(0.0, 0.1, 0.52, 0.4, scene.paint)
        picture.oval(0.1 * facing, 0.22, 0.36, 0.24, lighter(scene.paint, 0.5))
        picture.oval(-0.15 * facing, 0.08, 0.3, 0.2 + 0.06 * gape, darker(scene.paint, 0.3))
        head = 0.42 * facing
        picture.disc(head, -0.32 + bob, 0.28, scene.paint)
        picture.disc(head + 0.08 * facing, -0.4 + bob, 0.06, (25, 25, 25))
        root, tip = head + 0.24 * facing, head + 0.56 * facing
        picture.shape([(root, -0.4 + bob), (tip, -0.34 + bob - 0.2 * gape), (root, -0.28 + bob)], (30, 160, 240))
        picture.shape([(root, -0.32 + bob), (tip, -0.28 + bob + 0.2 * gape), (root, -0.2 + bob)], (20, 120, 210))

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), chirps), draw)


def _chirp(base: float, bend: float, wave: float, seconds: float) -> Signal:
    share = time_axis(seconds) / seconds
    frequency = base * (1 + bend * share + wave * np.sin(2 * np.pi * 28 * share * seconds))
    return oscillate(np.minimum(frequency, 7200.0), seconds) * np.sin(np.pi * share) ** 1.5


def helicopter(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a helicopter whose blades pass 6 to 18 times a second.

    The blades chop the air as they pass.
    """
    chop, phase = scene.between(6, 18), generator.uniform(0, 1)
    sharp, top = generator.uniform(2, 8), scene.tone(500, 2200)
    time = time_axis(scene.seconds)
    beat = (0.5 + 0.5 * np.cos(2 * np.pi * (chop * time + phase))) ** sharp
    air = hiss(generator, scene.seconds, 50, top, tilt=0.6)
    whine = generator.uniform(0.02, 0.15) * oscillate(scene.tone(500, 1500), scene.seconds)
    sound = (0.2 + beat) * air + 0.6 * beat * oscillate(scene.tone(50, 110), scene.seconds) + whine
    rate, facing = generator.uniform(0.4, 0.9), (-1.0 if generator.random() < 0.5 else 1.0)

    def draw(picture: Picture, moment: float) -> None:
        lift = 0.06 * float(np.sin(2 * np.pi * rate * moment))
        body = picture.leaning(0.1 * facing * float(np.sin(rate * moment)), 0.0, lift)
        body.shape(
            [(-0.2 * facing, -0.08), (-0.98 * facing, -0.12), (-0.98 * facing, 0.0), (-0.2 * facing, 0.2)],
            darker(scene.paint),
        )
        body.shape([(-0.86 * facing, -0.08), (-1.0 * facing, -0.4), (-0.78 * facing, -0.08)], darker(scene.paint))
        body.oval(0.22 * facing, 0.08, 0.52, 0.34, scene.paint)
        body.oval(0.42 * facing, 0.0, 0.24, 0.2, (225, 200, 160))
        for side in (-0.05, 0.45):
            body.line(side * facing, 0.38, side * facing, 0.58, (60, 60, 60), 0.05)
        body.line(-0.25 * facing, 0.6, 0.75 * facing, 0.6, (60, 60, 60), 0.07)
        body.line(0.15 * facing, -0.25, 0.15 * facing, -0.42, (60, 60, 60), 0.08)
        angle = np.pi * (chop * moment + phase)  # two blades: half a turn from one chop to the next
        reach = 0.95 * float(np.cos(angle))
        body.line(0.15 * facing - reach, -0.44, 0.15 * facing + reach, -0.44, lighter((60, 60, 60), 0.2), 0.07)
        body.oval(0.15 * facing, -0.44, 0.95, 0.03, (150, 150, 150))
        tail = body.leaning(3.1 * angle, -0.98 * facing, -0.2)
        tail.line(0, -0.2, 0, 0.2, (70, 70, 70), 0.06)

    return Event(np.asarray(sound), draw)


def typing(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a keyboard with 4 to 12 uneven strokes a second.

    Keys go down and light up, and the text on the screen grows.
    """
    strokes = beats(generator, scene, 1 / scene.between(4, 12), jitter=0.45)
    keys = [_KEYS[int(number)] for number in generator.integers(len(_KEYS), size=len(strokes))]
    low, body = scene.tone(900, 2600), generator.uniform(0.1, 0.5)
    pieces = [(stroke, _stroke(generator, low * generator.uniform(0.85, 1.2), body)) for stroke in strokes]
    written = int(generator.integers(0, 20))
    words = generator.random(400) < 0.8

    def draw(picture: Picture, time: float) -> None:
        picture.box(-0.75, -0.95, 0.75, 0.05, (60, 60, 60))
        picture.box(-0.68, -0.88, 0.68, -0.02, (225, 225, 215))
        for number in range(min(written + sum(stroke <= time for stroke in strokes), 5 * 14)):
            if words[number]:
                x, y = -0.6 + 0.088 * (number % 14), -0.78 + 0.16 * (number // 14)
                picture.line(x, y, x + 0.06, y, (70, 60, 60), 0.06)
        picture.shape([(-0.9, 0.15), (0.9, 0.15), (1.0, 0.92), (-1.0, 0.92)], darker(scene.paint))
        down = [key for stroke, key in zip(strokes, keys, strict=True) if 0 <= time - stroke < 0.1]
        for row, column in _KEYS:
            x, y = 0.215 * (column - 3.5) + 0.03 * row - 0.03, 0.32 + 0.21 * row
            paint = (110, 250, 255) if (row, column) in down else lighter(scene.paint, 0.55)
            drop = 0.03 if (row, column) in down else 0.0
            picture.box(x - 0.085, y - 0.08 + drop, x + 0.085, y + 0.08 + drop, paint)

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), pieces), draw)


def _stroke(generator: np.random.Generator, low: float, body: float) -> Signal:
    piece = generator.uniform(0.6, 1.0) * click(generator, 0.05, low, min(3 * low, 7800))
    return piece + body * strike(0.15 * low, 0.05, decay=6)


_EVENTS = (bouncing_ball, metronome, siren, rain, engine, telephone_keypad, heartbeat, bird, helicopter, typing)
EVENTS: dict[str, Callable[[Scene, np.random.Generator], Event]] = {
    event.__name__.replace("_", " "): event for event in _EVENTS
}
"""Label -> `(scene, generator) -> Event`; the order is the order of the labels."""
