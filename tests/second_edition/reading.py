"""Results of reading each file of the second edition, by the public face alone.

A reading may change its file, as `train --resume` does, so it is called in a copy of the folder.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from equality import answer, command, content, epochs, sets, stable, tensors
from small_trainings import write_tones

import aadml

Reading = Callable[[Path], Any]
"""Called with the folder of the files; returns JSON."""

NETWORK = sets(["network.hidden=[4]", "training.batch=12", "training.learning_rate=0.01"])


def first_rows(values: Any) -> list[list[float]]:
    return [[float(value) for value in row] for row in values[:3]]


def scores(evaluation: Any) -> Any:
    return stable(evaluation.to_json())


def features(name: str) -> Reading:
    """Inspect and read a feature file."""

    def read(folder: Path) -> Any:
        return {"inspected": answer("inspect", folder / name), "content": content(folder / name)}

    return read


def inspected(name: str) -> Reading:
    """Inspect a feature file of one modality."""
    return lambda folder: {"inspected": answer("inspect", folder / name)}


def merged(folder: Path) -> Any:
    """Merge two shards; the result equals the file of the whole job but for its sequence."""
    command("merge", folder / "part.0-of-2.h5", folder / "part.1-of-2.h5", "-o", folder / "merged.h5")
    return {"inspected": answer("inspect", folder / "merged.h5")}


def finished(folder: Path) -> Any:
    """Load, verify, evaluate and report a finished run."""
    run = folder / "run_finished"
    model = aadml.load(run)
    test = aadml.read(folder / "one_label.h5").test
    result = {
        "tensors": tensors(run / "model.safetensors"),
        "epochs": epochs(run),
        "damaged": list(aadml.verify(run)),
        "kept": stable(dict(model.evaluation or {})),
        "embeddings": {m: first_rows(model.embed(**{m: test[m].numpy()})) for m in test.modalities},
        "evaluation": scores(aadml.evaluate(run)),
        "partner": scores(aadml.evaluate(run, protocol="legacy:partner")),
    }
    aadml.report(run)
    return result | {"report": (run / "report.html").is_file()}


def interrupted(folder: Path) -> Any:
    """Resume an interrupted run by the command line."""
    run = Path(command("train", "--resume", folder / "run_interrupted").splitlines()[-1])
    return {"tensors": tensors(run / "model.safetensors"), "epochs": epochs(run), "evaluation": answer("evaluate", run)}


def model(folder: Path) -> Any:
    """Load a model folder, verify it, and score data by it."""
    loaded = aadml.load(folder / "model")
    test = aadml.read(folder / "one_label.h5").test
    audio, visual = (loaded.embed(**{m: test[m].numpy()}) for m in ("audio", "visual"))
    return {
        "repr": repr(loaded),
        "damaged": list(aadml.verify(folder / "model")),
        "nearest": loaded.top_k(audio, visual, k=3).indices.tolist(),
        "evaluation": scores(aadml.evaluate(loaded, data=folder / "one_label.h5", metrics="recall@3")),
    }


def model_of_captions(folder: Path) -> Any:
    """Embed words by a model of captioned sound, and score tones."""
    tones = write_tones(folder / "tones" / "manifest.csv")
    loaded = aadml.load(folder / "model_of_captions")
    return {
        "embedding": first_rows([loaded.embed(text="Tone number 3.")]),
        "evaluation": scores(aadml.evaluate(loaded, data=tones)),
    }


def embeddings(folder: Path) -> Any:
    return {"evaluation": answer("evaluate", "--embeddings", folder / "embeddings.h5", "--split", "test")}


def array_index(folder: Path) -> Any:
    """Search an index, calibrated on validation clips, by vectors."""
    from aadml.search import Index

    test = aadml.read(folder / "one_label.h5").test
    with Index(folder / "arrays.index") as index:
        found = [index.search(audio=test["audio"][row].numpy(), to="visual", k=5) for row in range(3)]
        return {
            "items": len(index),
            "similarity": index.similarity,
            "hits": [[[hit.id, hit.score, hit.probability] for hit in one.hits] for one in found],
        }


def clip_index(folder: Path) -> Any:
    """Search an index that embeds media by a model."""
    question, index = folder / "question.mp4", folder / "clips.index"
    return {
        "audio": answer("search", index, "--audio", question, "--to", "visual", "-k", 5),
        "clip": answer("search", index, "--clip", question, "--to", "audio", "-k", 3, "--where", "label = 'rain'"),
        "updated": answer("index", folder / "extracted.h5", "-o", index, "--model", folder / "model_of_clips"),
    }


def sound_index(folder: Path) -> Any:
    """Search a calibrated index of features as they are, and export it."""
    index = folder / "sounds.index"
    command("search", index, "--export", folder / "vectors")
    return {
        "audio": answer("search", index, "--audio", folder / "question.mp4", "-k", 5),
        "exported": sorted(path.name for path in folder.glob("vectors.*")),
    }


def ablation(folder: Path) -> Any:
    """Go on with an ablation, whose runs are finished."""
    return {"tables": answer(
        "ablate", "--over", "loss=triplet,aa-triplet", "--data", folder / "one_label.h5", "--seeds", 2,
        "--max-epochs", 2, "--workers", 0, *NETWORK, "-o", folder / "ablation", *_only_merged(folder / "ablation"),
    )}  # fmt: skip


def comparison(folder: Path) -> Any:
    """Go on with a comparison, whose runs are finished."""
    return {"tables": answer(
        "compare", "--methods", "cca", "--losses", "triplet", "--data", folder / "one_label.h5", "--seeds", 1,
        "--max-epochs", 2, "--no-controls", "--workers", 0, *NETWORK, *sets(["method.dimension=4"]),
        "-o", folder / "comparison", *_only_merged(folder / "comparison"),
    )}  # fmt: skip


def _only_merged(folder: Path) -> list[str]:
    """Train nothing where the runs are there."""
    return ["--merge"] if folder.exists() else []


READINGS: dict[str, Reading] = {
    **{name: features(f"{name}.h5") for name in
       ("one_label", "unlabelled", "several_labels", "masked", "texts", "extracted", "towers")},
    **{name: inspected(f"{name}.h5") for name in ("sounds", "sequence", "part.0-of-2")},
    "merged": merged, "run_finished": finished, "run_interrupted": interrupted, "model": model,
    "model_of_captions": model_of_captions, "embeddings": embeddings, "arrays.index": array_index,
    "clips.index": clip_index, "sounds.index": sound_index, "ablation": ablation, "comparison": comparison,
}  # fmt: skip
