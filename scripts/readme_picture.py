"""Draw the picture of README from the folder of `scripts/demo`: a search by sound, and three scores of one model.

Usage: python scripts/readme_picture.py DEMO [-o docs/figures/readme.png] [--clip bouncing-ball-0110]
"""

import argparse
from pathlib import Path

import av
import numpy as np
from matplotlib.figure import Figure

import aadml

LEAK = "legacy:partner"
HITS = 4
INK, SOFT, GOOD, BAD = "#1b1f24", "#8a94a0", "#2f7d5b", "#c2503f"


def samples_of(path: Path) -> np.ndarray:
    """Return the sound of a clip (n,), mono."""
    with av.open(str(path)) as container:
        blocks = [frame.to_ndarray().mean(0) for frame in container.decode(audio=0)]
    return np.concatenate(blocks)


def middle_frame(path: Path) -> np.ndarray:
    """Return the middle frame of a clip (height, width, 3)."""
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return frames[len(frames) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/figures/readme.png"))
    parser.add_argument("--clip", default="bouncing-ball-0110")
    arguments = parser.parse_args()
    clips = arguments.demo / "clips" / "clips"
    (run,) = (arguments.demo / "runs").iterdir()
    query = clips / f"{arguments.clip}.mp4"
    with aadml.Index(arguments.demo / "clips.index") as index:
        hits = index.search(
            audio=query, to="visual", k=HITS, where="split = 'test' AND id != ?", parameters=[query.stem]
        ).hits
    honest, leaking = (aadml.evaluate(run, protocol=name).to_json() for name in ("inductive", LEAK))
    scores = {"chance": honest["chance"], "honest": honest["map_mean"], "with a leak": leaking["map_mean"]}

    figure = Figure(figsize=(11, 3.3), dpi=160, facecolor="white")
    sound = figure.add_axes((0.02, 0.29, 0.13, 0.45))
    samples = samples_of(query)
    sound.fill_between(np.arange(len(samples)), -abs(samples), abs(samples), color=INK, linewidth=0)
    sound.axis("off")
    figure.text(0.085, 0.86, "a sound", ha="center", color=INK, fontsize=12, weight="bold")
    figure.text(0.085, 0.2, arguments.clip.rpartition("-")[0].replace("-", " "), ha="center", color=SOFT, fontsize=10)
    figure.text(0.175, 0.5, "→", ha="center", va="center", color=INK, fontsize=22)
    figure.text(0.41, 0.86, "pictures from other clips", ha="center", color=INK, fontsize=12, weight="bold")
    for number, hit in enumerate(hits):
        left = 0.205 + number * 0.105
        picture = figure.add_axes((left, 0.26, 0.098, 0.5))
        picture.imshow(middle_frame(clips / f"{hit.id}.mp4"))
        picture.axis("off")
        right = hit.item.label == query.stem.rpartition("-")[0].replace("-", " ")
        figure.text(left + 0.049, 0.13, f"{hit.item.label}\n{hit.probability:.0%}", ha="center", fontsize=9.5,
                    color=GOOD if right else BAD)  # fmt: skip
    bars = figure.add_axes((0.70, 0.2, 0.28, 0.56))
    bars.bar(list(scores), list(scores.values()), color=[SOFT, GOOD, BAD], width=0.6)
    for place, value in enumerate(scores.values()):
        bars.text(place, value + 0.03, f"{value:.2f}", ha="center", color=INK, fontsize=11)
    bars.set_ylim(0, 1.15)
    bars.set_yticks([])
    bars.spines[["top", "right", "left"]].set_visible(False)
    bars.tick_params(length=0, labelsize=10, colors=INK)
    figure.text(0.84, 0.86, "score of one model, three ways", ha="center", color=INK, fontsize=12, weight="bold")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.output)
    print(f"{arguments.output}: " + ", ".join(f"{name} {value:.3f}" for name, value in scores.items()))


if __name__ == "__main__":
    main()
