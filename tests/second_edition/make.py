"""Write the files of the second edition that `test_files.py` reads, and `results.json`: what they gave when written.

Usage: PYTHONPATH=.:scripts/soak .venv/bin/python tests/second_edition/make.py

It is kept to show how the files came about; `results.json` names the commit. Run at another edition, it would write the
files of that edition.
"""

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
from equality import command, machine, sets
from faults import KILLED, in_child
from small_trainings import SETTINGS, write_tones

import aadml
from tests.feature_extraction.hub import tiny
from tests.second_edition.reading import READINGS

HERE = Path(__file__).parent
WORK = Path("/tmp/second-edition")  # the name stands in the files that hold absolute paths
NETWORK = {"network.hidden": [8], "training.batch": 12, "training.learning_rate": 0.01}
SETS = sets([f"{key}={json.dumps(value)}" for key, value in NETWORK.items()])
SOUND = ("--visual", "none", "--workers", 1)


def drawn(counts, widths, seed):
    """Features of three classes that are easy to tell apart, as the arrays of an npz."""
    generator = np.random.default_rng(seed)
    labels = np.arange(sum(counts)) % 3
    latent = 2 * np.eye(6)[labels] + generator.standard_normal((len(labels), 6))
    return {
        **{name: (latent @ generator.standard_normal((6, width))).astype("f4") for name, width in widths.items()},
        "label": np.array(["dog", "rain", "train"])[labels],
        "split": np.repeat(["train", "valid", "test"], counts),
        "id": np.array([f"clip-{number:03d}" for number in range(len(labels))]),
    }


def write_features(name, arrays, *options):
    np.savez("arrays.npz", **arrays)
    command("convert", "arrays.npz", f"{name}.h5", *options)
    Path("arrays.npz").unlink()


def write_arrays():
    """Feature files of one label a clip, of none, with masked modalities, and with several texts a clip."""
    write_features("one_label", drawn((36, 30, 15), {"audio": 6, "visual": 8}, 0))
    unlabelled = drawn((24, 9, 9), {"audio": 6, "visual": 8}, 1)
    del unlabelled["label"]
    write_features("unlabelled", unlabelled)
    masked = drawn((24, 9, 9), {"audio": 6, "visual": 8, "flow": 5}, 3)
    masked |= {"flow_present": np.arange(42) % 3 > 0, "audio_present": np.arange(42) % 7 > 0}
    write_features("masked", masked, "--audio", "audio", "--visual", "visual", "--view", "flow=flow")
    texts = drawn((24, 9, 9), {"audio": 6, "text": 7}, 4)
    del texts["label"]
    rows = np.sort(np.concatenate([np.arange(42), np.arange(0, 42, 2)]))
    texts["text"] = texts["text"][rows] + np.random.default_rng(5).standard_normal((len(rows), 7)).astype("f4")
    write_features("texts", texts | {"text_row": rows})


def write_manifest(name, rows, label="label"):
    with Path(name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "media", label, "split"])
        writer.writerows(rows)


def write_extracted():
    """Feature files of extractors: sound and picture, several labels, sound, a sequence, two shards, towers of CLAP."""
    command("sample-data", "clips", "--clips", 50, "--seconds", 0.5, "--workers", 1)
    with Path("clips/manifest.csv").open(newline="") as file:
        clips = [(row["id"], f"clips/{row['media']}", row["label"]) for row in csv.DictReader(file)]
    shutil.copy(clips[-1][1], "question.mp4")
    splits = ["train"] * 10 + ["valid"] * 30 + ["test"] * 10
    write_manifest("sounds.csv", [(*clip, split) for clip, split in zip(clips, splits, strict=True)])
    few = [clip for clip in clips if clip[2] in ("rain", "siren", "engine")][:12]
    splits = ["train"] * 6 + ["valid"] * 3 + ["test"] * 3
    few = [(*clip, split) for clip, split in zip(few, splits, strict=True)]
    write_manifest("few.csv", few)
    several = [
        (clip, media, f"{label}|{few[row - 1][2]}", split) for row, (clip, media, label, split) in enumerate(few)
    ]
    write_manifest("several.csv", several, "labels")
    command("extract", "several.csv", "-o", "several_labels.h5", "--workers", 1)
    command("extract", "sounds.csv", "-o", "sounds.h5", *SOUND)
    command("extract", "few.csv", "-o", "extracted.h5", "--workers", 1)
    command("extract", "few.csv", "-o", "sequence.h5", "--sequence", *SOUND)
    for part in ("0/2", "1/2"):
        command("extract", "few.csv", "-o", "part.h5", "--shard", part, *SOUND)
    write_tones(Path("tones/manifest.csv"))
    tower = f"hf:{tiny.written('clap', Path('networks'))}"
    with Path("tones/manifest.csv").open(newline="") as file:
        captions = [(row["id"], row["media"], row["split"], row["caption_1"]) for row in csv.DictReader(file)]
    with Path("tones/captions.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "media", "split", "caption"), *captions])
    command(
        "extract",
        "tones/captions.csv",
        "-o",
        "towers.h5",
        "--audio",
        tower,
        "--visual",
        "none",
        "--text",
        tower,
        "--workers",
        1,
    )


def write_runs():
    """Runs finished and interrupted, models, and embeddings."""
    arguments = {"config": "aadml", "loss": "aa-triplet", "k": 2, "epochs": 3, "device": "cpu"}
    settings = NETWORK | {"data": "one_label.h5"}  # a relative path, so that the run is resumed anywhere
    flags = [part for key, value in arguments.items() for part in (f"--{key}", value)]
    run = command("train", *flags, *SETS, "--set", "data=one_label.h5", "--runs", "runs").splitlines()[-1]
    Path(run).rename("run_finished")

    def end(record):
        if record["epoch"] == 2:
            os._exit(KILLED)

    ending = in_child(lambda: aadml.fit(**arguments, settings=settings, runs="runs", on_epoch=end))
    assert ending.code == KILLED, ending.text
    next(Path("runs").iterdir()).rename("run_interrupted")
    command("evaluate", "run_finished", "--protocol", "legacy:partner")
    command("audit", "run_finished")
    model = aadml.load("run_finished")
    model.save("model")
    command("embed", "model", "one_label.h5", "-o", "embeddings.h5")
    aadml.fit("extracted.h5", loss="triplet", epochs=2, device="cpu", settings=NETWORK).save("model_of_clips")
    small = [*sets(SETTINGS["audio-text"]), "--epochs", 1]
    words = ["--data", "tones/manifest.csv", "--config", "audio_text", "--device", "cpu", "--runs", "runs", *small]
    aadml.load(command("train", *words).splitlines()[-1]).save("model_of_captions")


def write_indexes():
    command("index", "one_label.h5", "-o", "arrays.index", "--model", "model")
    command("index", "extracted.h5", "-o", "clips.index", "--model", "model_of_clips")
    command("index", "sounds.h5", "-o", "sounds.index")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    os.chdir(WORK)
    os.environ |= {"AADML_CACHE": str(WORK / "cache"), "HF_HUB_OFFLINE": "1"}
    for step in (write_arrays, write_extracted, write_runs, write_indexes):
        step()
    for sweep in ("ablation", "comparison"):
        READINGS[sweep](Path())
    for path in (*map(Path, ("clips", "networks", "tones", "cache", "runs")), *Path().glob("*.work")):
        shutil.rmtree(path)
    for name in ("sounds.csv", "few.csv", "several.csv"):
        Path(name).unlink()
    for page in [*Path("comparison").glob("*.html"), *Path().glob("*/*.svg")]:  # pages are written, not read
        page.unlink()
    shutil.rmtree(HERE / "files", ignore_errors=True)
    shutil.copytree(WORK, HERE / "files")
    git = ["git", "-C", str(HERE), "rev-parse", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    results = {name: json.loads(json.dumps(read(Path()))) for name, read in READINGS.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(result)}" for name, result in results.items())
    head = json.dumps({"commit": commit, "machine": machine()}, indent=1)[:-2]
    (HERE / "results.json").write_text(f'{head},\n "results": {{\n{lines}\n}}}}\n', encoding="utf-8")
    shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
