"""Rate and memory of full-size pretrained networks as extractors, compared with a plain loop of decoding and inference.

Usage: python scripts/bench/encoders.py [clip] [dinov2] [clap] [rates] [--clips N] [--rounds N]

Weights are random, because they change neither rate nor memory. Each round times extraction (one decoding process) and
a plain loop in turn: decode a clip, prepare it by `transformers`, call the network. Processor time is printed with wall
time, because other work on the machine lengthens the latter. Memory is the peak of this process. The features of the
loop are compared with those of the job, and features in bfloat16 with those in float32. `rates` prints clips of 10 s
per second, including decoding, for every audio or visual encoder of the table in docs/encoders.md. Needs the extra
`hub`.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as t

from aadml.data.sample_clips import sample_data
from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.jobs.extract import execute
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.manifest import read_manifest
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Frames, Limits, Sound

MODALITY = {"clip": "visual", "dinov2": "visual", "clap": "audio"}
OWN = {"log-mel": "audio", "hog-color": "visual", "vggish": "audio", "inception-v3": "visual"}
"""Extractors that do not use `transformers`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(MODALITY))
    parser.add_argument("--clips", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(
        f"{len(os.sched_getaffinity(0))} processors, {torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as place:
        manifest = sample_data(Path(place) / "clips", clips=arguments.clips, seconds=2.0)
        for name in arguments.networks:
            if name == "rates":
                rates(Path(place), arguments.clips, arguments.rounds)
            else:
                measure(name, Path(place), manifest, arguments.rounds)


def rates(folder: Path, clips: int, rounds: int) -> None:
    """Print the number of 10 s clips that each encoder processes per second: the best of `rounds`, without loading."""
    manifest = sample_data(folder / "long", clips=clips, seconds=10.0)
    for name, modality in (OWN | MODALITY | {"ast": "audio", "whisper": "audio", "siglip": "visual"}).items():
        untrained = {"weights": "untrained"} if name in ("vggish", "inception-v3") else {}
        model = name if name in OWN else f"hf:{written(name, folder / f'{name}-model')}"
        network, times = extractor(model, modality, untrained), []
        for number in range(rounds):
            output = folder / f"{name}-rate-{number}.h5"
            plan = ExtractionPlan(read_manifest(manifest), output, [network])
            times.append(timed(lambda plan=plan: execute(plan)))
        wall, used = (min(each) / clips for each in zip(*times, strict=True))
        print(f"{name}: {1 / wall:.2f} clips of 10 s a second, {used:.2f} s of processor a clip", flush=True)


def measure(name: str, folder: Path, manifest: Path, rounds: int) -> None:
    model, modality = written(name, folder / name), MODALITY[name]
    loop = {"clip": pictures("CLIPImageProcessorPil"), "dinov2": pictures("BitImageProcessorPil"), "clap": sounds}[name]
    network = extractor(f"hf:{model}", modality)
    job_times, loop_times = [], []
    rows = read_manifest(manifest).rows
    paths = [row.media[modality] for row in rows]
    for number in range(rounds):
        output = folder / f"{name}-{number}.h5"
        job_times.append(
            timed(lambda output=output: execute(ExtractionPlan(read_manifest(manifest), output, [network], workers=1)))
        )
        plain: list[Any] = []
        loop_times.append(timed(lambda plain=plain: plain.extend(loop(model, paths))))
    found = read_features(output).features[modality]
    half = extractor(f"hf:{model}", modality, {"precision": "bfloat16"})
    execute(ExtractionPlan(read_manifest(manifest), folder / f"{name}-half.h5", [half], workers=1))
    other = read_features(folder / f"{name}-half.h5").features[modality]
    print(
        f"{name}: {network.dimension}-d, {len(paths)} clips of 2 s; {said(job_times, len(paths))}; "
        f"plain loop {said(loop_times, len(paths))}; largest difference from the loop {abs(found - plain).max():.1e}; "
        f"bfloat16: relative error {np.linalg.norm(other - found) / np.linalg.norm(found):.1e}, "
        f"smallest cosine {cosines(other, found).min():.5f}; "
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"
    )


def written(name: str, folder: Path) -> Path:
    """Write a full-size network of random weights with its preprocessing."""
    torch.manual_seed(0)
    network, preparation = FULL_SIZE[name]()
    network.save_pretrained(folder)
    preparation.save_pretrained(folder)
    return folder


FULL_SIZE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "clip": lambda: (t.CLIPModel(t.CLIPConfig()), t.CLIPImageProcessorPil()),
    "siglip": lambda: (t.SiglipModel(t.SiglipConfig()), t.SiglipImageProcessorPil()),
    "dinov2": lambda: (
        t.Dinov2Model(t.Dinov2Config(hidden_size=384, num_attention_heads=6, patch_size=14, image_size=518)),
        t.BitImageProcessorPil(size={"shortest_edge": 256}),
    ),
    "clap": lambda: (t.ClapModel(t.ClapConfig()), t.ClapFeatureExtractor(truncation="rand_trunc")),
    "ast": lambda: (t.ASTModel(t.ASTConfig()), t.ASTFeatureExtractor()),
    "whisper": lambda: (
        t.WhisperModel(
            t.WhisperConfig(
                d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8, decoder_attention_heads=8,
                encoder_ffn_dim=2048, decoder_ffn_dim=2048,
            )
        ),
        t.WhisperFeatureExtractor(),
    ),
}  # fmt: skip


def pictures(processor: str) -> Callable[[Path, list[str]], list[Any]]:
    @torch.inference_mode()
    def loop(model: Path, paths: list[str]) -> list[Any]:
        kind = "CLIPVisionModelWithProjection" if processor.startswith("CLIP") else "Dinov2Model"
        network, prepared = getattr(t, kind).from_pretrained(model).eval(), getattr(t, processor).from_pretrained(model)
        found = []
        for path in paths:
            frames = decode(path, Frames(), Limits(), 0.0).values
            output = network(**prepared(list(frames), return_tensors="pt"))
            rows = output.image_embeds if processor.startswith("CLIP") else output.pooler_output
            found.append(rows.mean(dim=0).numpy())
        return found

    return loop


@torch.inference_mode()
def sounds(model: Path, paths: list[str]) -> list[Any]:
    network = t.ClapAudioModelWithProjection.from_pretrained(model).eval()
    prepared = t.AutoFeatureExtractor.from_pretrained(model)
    found = []
    for path in paths:
        samples = decode(path, Sound(48_000), Limits(), 0.0).values
        inputs = prepared(samples, sampling_rate=48_000, return_tensors="pt")
        output = network(input_features=inputs["input_features"].float(), is_longer=torch.zeros(1, 1, dtype=torch.bool))
        found.append(output.audio_embeds[0].numpy())
    return found


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return wall time and processor time of a call, including child processes that ended during the call."""
    begin, used = time.monotonic(), sum(os.times()[:4])
    call()
    return time.monotonic() - begin, sum(os.times()[:4]) - used


def said(times: list[tuple[float, float]], clips: int) -> str:
    wall, used = (statistics.median(each) for each in zip(*times, strict=True))
    return f"{clips / wall:.1f} clips/s, {used / clips:.2f} s of processor a clip"


def cosines(one: Any, other: Any) -> Any:
    return (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


if __name__ == "__main__":
    main()
