"""Results of small training runs of everything that trains, which a change of structure must not change.

Usage: scripts/soak/equality record|check [--only TEXT] [--jobs 2] [--file FILE]

`record` writes the results to a JSON file. `check` computes the results again and prints every difference (exit code
1). Both use only the public interface: `import aadml` and `python -m aadml`. Tensors are compared by hash if processor
and libraries are those of the record. Otherwise tensors are skipped, and numbers may differ by 1e-5.
"""

import argparse
import hashlib
import io
import json
import math
import os
import platform
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from small_trainings import OF_SOUND, SETTINGS, STAGED, write_tones

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests" / "second_edition" / "files"
RECORD = ROOT / "tests" / "second_edition" / "equality.json"
TOLERANCE = 1e-5
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "opencv-python", "av")
UNSTABLE = re.compile("seconds|path|caption|notes|command|folder|page|versions|decoder|evidence")
"""Keys of results that contain times, paths or sentences."""

LOSSES = (
    "triplet", "triplet-weighted", "ranking", "contrastive", "hinge", "n-pair", "angular", "multi-similarity", "supcon",
    "nt-xent", "cross-clr", "dsl", "posterior-nca", "proxy-nca", "proxy-anchor", "soft-triple", "arcface",
    "daml-triplet", "hdml-triplet",
)  # fmt: skip
"""Losses that are trained with and without the prefix `aa-`."""

NETWORK = ("network.hidden=[8]", "training.batch=12", "training.learning_rate=0.01")
PAIRS = ("--criterion", "map", "--set", "method.dimension=8")
CLOSED_FORMS = ("cca", "kcca", "c-cca", "random", "zero-shot")
Entry = Callable[[Path], dict[str, Any]]


def command(*arguments: object, codes: tuple[int, ...] = (0,)) -> str:
    """Run `python -m aadml` in this process and return its standard output."""
    output, errors, code = io.StringIO(), io.StringIO(), 0
    before = sys.argv, warnings.showwarning, signal.getsignal(signal.SIGINT)
    sys.argv = ["aadml", *map(str, arguments)]
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            runpy.run_module("aadml", run_name="__main__")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    finally:
        sys.argv, warnings.showwarning, handler = before
        signal.signal(signal.SIGINT, handler)
    if code not in codes:
        raise RuntimeError(f"aadml {' '.join(map(str, arguments))}: exit code {code}: {errors.getvalue().strip()}")
    return output.getvalue()


def answer(*arguments: object, codes: tuple[int, ...] = (0,)) -> Any:
    """Return the JSON output of a command without times, paths and sentences."""
    return stable(json.loads(command(*arguments, "--json", codes=codes)))


def stable(value: Any) -> Any:
    """Return JSON without the keys in `UNSTABLE`."""
    if isinstance(value, Mapping):
        return {key: stable(inner) for key, inner in value.items() if not UNSTABLE.search(key)}
    return [stable(inner) for inner in value] if isinstance(value, list) else value


def digest(values: Any) -> str:
    """Return type, shape and a hash of the content of an array or a tensor."""
    import torch

    tensor = torch.as_tensor(values).detach().cpu().contiguous()
    content = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    return f"{str(tensor.dtype).removeprefix('torch.')} {shape} {hashlib.sha256(content).hexdigest()[:16]}"


def tensors(path: Path) -> dict[str, str]:
    """Return the digest of every tensor of a safetensors file, by name."""
    from safetensors.torch import load_file

    return {name: digest(tensor) for name, tensor in sorted(load_file(path).items())}


def audited(run: Path) -> dict[str, str]:
    """Audit a run: check -> verdict.

    The numbers of the evidence depend on the random draws of each audit. Checksums of embeddings differ by machine, and
    the sets are too small for the check of carried labels.
    """
    findings = json.loads(command("audit", run, "--json", codes=(0, 1)))["findings"]
    return {
        one["check"]: one["verdict"]
        for one in findings
        if one["check"] not in ("channels", "embeddings", "carried labels")
    }


def epochs(run: Path) -> list[Any]:
    """Return the log of a training run without times."""
    path = run / "metrics.jsonl"
    return [stable(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def training(*arguments: str, folder: Path) -> dict[str, Any]:
    """Train, evaluate and audit a run."""
    run = Path(command("train", *arguments, "--device", "cpu", "--runs", folder / "runs").splitlines()[-1])
    return {
        "tensors": tensors(run / "model.safetensors"),
        "epochs": epochs(run),
        "evaluation": answer("evaluate", run),
        "audit": audited(run),
    }


def sets(settings: tuple[str, ...] | list[str]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def of_method(name: str, folder: Path) -> dict[str, Any]:
    """Train a method by a reduced version of its preset."""
    data = FILES / ("towers.h5" if name == "zero-shot" else "one_label.h5")
    data = write_tones(folder / "tones" / "manifest.csv") if name in OF_SOUND else data
    small = list(SETTINGS.get(name, []))
    if name not in CLOSED_FORMS:
        batch = [] if any("training.batch" in setting for setting in small) else ["training.batch=12"]
        small += [*batch, f"training.epochs={3 if name in STAGED else 2}"]
    config = ["--config", OF_SOUND[name]] if name in OF_SOUND else []
    return training("--data", str(data), "--method", name, *config, *sets(small), folder=folder)


def of_loss(name: str, folder: Path) -> dict[str, Any]:
    """Train the network of the paper with a loss."""
    neighbors = ["--k", "2"] if name.startswith("aa-") else []
    data = str(FILES / "one_label.h5")
    return training("--data", data, "--loss", name, *neighbors, "--epochs", "2", *sets(NETWORK), folder=folder)


def of_data(name: str, *arguments: str, folder: Path) -> dict[str, Any]:
    """Train on a feature file of another kind, with the config that the data determine."""
    return training("--data", str(FILES / name), "--epochs", "2", *sets(NETWORK), *arguments, folder=folder)


def compared(folder: Path) -> dict[str, Any]:
    """Compare methods and losses, with controls and rivals."""
    return {"tables": answer(
        "compare", "--data", FILES / "one_label.h5", "--methods", "cca,dscmr", "--losses", "triplet", "--rivals",
        "--seeds", 2, "--max-epochs", 2, "--metric", "recall@3", "--workers", 0, *sets(NETWORK),
        *sets(["method.dimension=4"]), "-o", folder / "comparison",
    )}  # fmt: skip


def ablated(folder: Path) -> dict[str, Any]:
    """Ablate the neighbors of the proxy and the loss."""
    return {"tables": answer(
        "ablate", "--over", "proxy.k=1,2", "--over", "loss=aa-triplet,aa-contrastive", "--data", FILES / "one_label.h5",
        "--seeds", 2, "--max-epochs", 2, "--workers", 0, *sets(NETWORK), "-o", folder / "ablation",
    )}  # fmt: skip


def reproduced(folder: Path) -> dict[str, Any]:
    """Reproduce a table of the paper by `--quick`, including all leaks."""
    return {"tables": answer(
        "reproduce", "paper", "--ave", FILES / "one_label.h5", "--quick", "--only", "table-3", "--seeds", 1,
        "--max-epochs", 1, "--workers", 0, "--yes", *sets(NETWORK), "-o", folder / "reproduction",
    )}  # fmt: skip


def reproduced_audio_text(folder: Path) -> dict[str, Any]:
    """Reproduce a table of audio and text by `--quick`."""
    tones = write_tones(folder / "tones" / "manifest.csv")
    return {"tables": answer(
        "reproduce", "xie", "--clotho", tones, "--quick", "--seeds", 1, "--max-epochs", 1,
        "--workers", 0, "--yes", *sets([*SETTINGS["xie"], "training.batch=6"]), "-o", folder / "reproduction",
    )}  # fmt: skip


def searched(folder: Path) -> dict[str, Any]:
    """Train on extracted features, index them, and search by sound, picture and both; then search without a model."""
    data = FILES / "extracted.h5"
    flags = ["--loss", "triplet", "--epochs", 2, *sets(NETWORK), "--device", "cpu", "--runs", folder]
    run = command("train", "--data", data, *flags).splitlines()[-1]
    index, plain, question = folder / "clips.index", folder / "sounds.index", FILES / "question.mp4"
    built = answer("index", data, "-o", index, "--model", run)
    calibrated = answer("index", FILES / "sounds.h5", "-o", plain)
    return {
        "built": [built, calibrated],
        "audio": answer("search", index, "--audio", question, "--to", "visual", "-k", 5),
        "visual": answer("search", index, "--visual", question, "--to", "audio", "-k", 5),
        "clip": answer("search", index, "--clip", question, "--to", "visual", "-k", 3, "--where", "split = 'train'"),
        "without model": answer("search", plain, "--audio", question, "-k", 5),
    }


def extracted(folder: Path) -> dict[str, Any]:
    """Render clips, extract their features in two shards, and merge them."""
    manifest = command("sample-data", folder / "clips", "--clips", 30, "--seconds", 0.5, "--workers", 1).split()[-1]
    for part in ("0/2", "1/2"):
        command("extract", manifest, "-o", folder / "f.h5", "--workers", 1, "--shard", part)
    command("merge", folder / "f.0-of-2.h5", folder / "f.1-of-2.h5", "-o", folder / "f.h5")
    return {"features": content(folder / "f.h5"), "inspected": answer("inspect", folder / "f.h5")}


def content(path: Path) -> dict[str, Any]:
    """Return the digests of the clips of a feature file, by split."""
    import aadml

    splits = aadml.read(path)
    return {
        name: {m: digest(part[m]) for m in part.modalities}
        | {"labels": digest(part.labels), "ids": hashlib.sha256("\n".join(part.ids).encode()).hexdigest()[:16]}
        for name, part in (("train", splits.train), ("valid", splits.valid), ("test", splits.test))
    }


def methods() -> list[str]:
    return list(json.loads(command("list", "methods", "--json")))


def entries() -> dict[str, Entry]:
    """Return the recorded entries by name."""
    return {
        **{f"method {name}": lambda folder, name=name: of_method(name, folder) for name in methods()},
        **{
            f"loss {prefix}{name}": lambda folder, name=prefix + name: of_loss(name, folder)
            for name in LOSSES
            for prefix in ("", "aa-")
        },
        "data unlabelled": lambda folder: of_data("unlabelled.h5", *PAIRS, folder=folder),
        "data several labels": lambda folder: of_data("several_labels.h5", *PAIRS, folder=folder),
        "data masked": lambda folder: of_data("masked.h5", "--loss", "aa-triplet", folder=folder),
        "data texts": lambda folder: of_data("texts.h5", *PAIRS, *sets(["texts=all"]), folder=folder),
        "config recommended": lambda folder: of_data("one_label.h5", "--config", "recommended", folder=folder),
        "config few_labels": lambda folder: of_data(
            "one_label.h5", "--config", "few_labels", *sets(["train_per_class=3", "unlabelled=keep"]), folder=folder
        ),
        "compare": compared,
        "ablate": ablated,
        "reproduce paper --quick": reproduced,
        "reproduce xie --quick": reproduced_audio_text,
        "search": searched,
        "extract": extracted,
    }


def compute(name: str) -> tuple[str, dict[str, Any], float]:
    """Compute an entry in a separate folder, without access to the folders of the user."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place, chdir(place):
        os.environ["AADML_CACHE"] = str(Path(place) / "cache")
        try:
            result: dict[str, Any] = json.loads(json.dumps(entries()[name](Path(place))))
        except Exception:  # the other entries are still computed
            result = {"failure": traceback.format_exc()}
    return name, result, time.perf_counter() - started


def machine() -> dict[str, str]:
    """Return the facts that determine the last bits of a result: processor, threads and libraries."""
    import torch

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    facts = {key.strip(): value.strip() for line in reversed(lines) for key, _, value in [line.partition(":")]}
    names = [facts.get(key, "") for key in ("model name", "cpu family", "model", "stepping")]
    flags = hashlib.sha256(facts.get("flags", "").encode()).hexdigest()[:8]  # products depend on these
    return {
        "processor": " ".join([platform.machine(), *names, flags]),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "threads": str(torch.get_num_threads()),
    } | {name: version(name) for name in LIBRARIES}


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text."""
    return [float(number) for number in _NUMBER.findall(text)]


_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def differences(recorded: Any, current: Any, *, exact: bool, place: str = "") -> Iterator[str]:
    """Yield the differences of two results.

    Args:
        recorded: JSON.
        current: JSON.
        exact: whether numbers must be equal and weights are compared; otherwise numbers may differ by `TOLERANCE`.
        place: path of both values, for the messages.
    """
    if place.endswith("/tensors"):
        yield from _differences_of_tensors(recorded, current, place) if exact else ()
    elif isinstance(recorded, dict) and isinstance(current, dict):
        for key in sorted(recorded.keys() | current.keys()):
            if key not in current or key not in recorded:
                yield f"{place}/{key}: {'is gone' if key in recorded else 'is new'}"
            else:
                yield from differences(recorded[key], current[key], exact=exact, place=f"{place}/{key}")
    elif isinstance(recorded, list) and isinstance(current, list) and len(recorded) == len(current):
        for number, pair in enumerate(zip(recorded, current, strict=True)):
            yield from differences(*pair, exact=exact, place=f"{place}/{number}")
    elif not _equal(recorded, current, exact):
        yield f"{place}: {recorded!r} was recorded, {current!r} is computed"


def _equal(recorded: Any, current: Any, exact: bool) -> bool:
    if recorded == current or exact:
        return bool(recorded == current)
    if isinstance(recorded, str) and isinstance(current, str):
        values = numbers_in(recorded), numbers_in(current)
        return (
            _NUMBER.sub("", recorded) == _NUMBER.sub("", current)
            and len(values[0]) == len(values[1])
            and all(math.isclose(one, other, rel_tol=0, abs_tol=1e-3) for one, other in zip(*values, strict=True))
        )
    numeric = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (recorded, current))
    return numeric and math.isclose(recorded, current, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _differences_of_tensors(recorded: dict[str, str], current: dict[str, str], place: str) -> Iterator[str]:
    if sorted(recorded.values()) != sorted(current.values()):
        changed = [name for name in recorded if recorded[name] != current.get(name)]
        yield f"{place}: {len(changed)} of {len(recorded)} tensors differ: {', '.join(changed[:5])}"
    elif recorded != current:
        names = [name for name in recorded if recorded[name] != current.get(name)]
        yield f"{place}: the contents are equal, and names differ: {', '.join(names[:5])}"


def counts(results: Mapping[str, Any]) -> str:
    """Return a sentence with the numbers of entries, training runs, tensors and numbers in the results."""
    trained = [result for result in results.values() if "tensors" in result]
    found = sum(len(result["tensors"]) for result in trained)
    numbers = sum(_count_numbers(result) for result in results.values())
    return f"{len(results)} entries: {len(trained)} trainings with {found} tensors; {numbers} numbers"


def _count_numbers(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(_count_numbers, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def computed(names: list[str], jobs: int) -> dict[str, Any]:
    """Compute entries in processes, and print the duration of each."""
    results = {}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for name, result, seconds in pool.map(compute, names):
            print(f"{seconds:6.1f} s  {name}", file=sys.stderr, flush=True)
            results[name] = result
    return results


def write(path: Path, results: Mapping[str, Any]) -> None:
    """Write a record with a line for each entry, so that a diff shows which entry changed."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    head = {"commit": commit, "seed": 0, "machine": machine(), "counts": counts(results)}
    lines = [f"{json.dumps(name)}: {json.dumps(result, sort_keys=True)}" for name, result in results.items()]
    text = json.dumps(head, indent=1)[:-2] + ',\n "results": {\n' + ",\n".join(lines) + "\n}}\n"
    partial_path = path.with_name(f".{path.name}.partial")
    partial_path.write_text(text, encoding="utf-8")
    partial_path.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("record", "check"))
    parser.add_argument("--only", default="", help="entries whose name holds this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--file", type=Path, default=RECORD)
    arguments = parser.parse_args()
    started = time.perf_counter()
    record = json.loads(arguments.file.read_text(encoding="utf-8")) if arguments.mode == "check" else {}
    known = record.get("results", {})
    names = [name for name in {**entries(), **known} if arguments.only in name]
    missing = sorted(set(names) - set(entries()))
    results = computed([name for name in names if name not in missing], arguments.jobs)
    seconds = time.perf_counter() - started
    failed = {name: result["failure"] for name, result in results.items() if "failure" in result}
    for name, story in failed.items():
        print(f"{name} failed: {story}", file=sys.stderr)
    if arguments.mode == "record" and failed:
        sys.exit(f"nothing was written: {len(failed)} of {len(results)} entries failed: {', '.join(failed)}")
    if arguments.mode == "record":
        write(arguments.file, results)
        print(f"{arguments.file}: {counts(results)}; {seconds:.0f} s")
        return
    exact = record["machine"] == machine()
    found = [f"{name}: has no such method any more" for name in missing]
    for name, result in results.items():
        found += differences(known[name], result, exact=exact, place=name) if name in known else [f"{name}: is new"]
    print("\n".join(found))
    how = "to the byte" if exact else f"numbers to {TOLERANCE:g} (another machine: {record['machine']} was recorded)"
    print(
        f"{counts(results)}; compared {how} with commit {record['commit']}: {len(found)} differences; {seconds:.0f} s"
    )
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
