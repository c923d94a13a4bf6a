"""Gain and memory of fine-tuning a pretrained network compared with its frozen start.

Usage: python scripts/bench/towers.py [--clips N] [--epochs N] [--seeds N] [--full-size]

A tiny CLAP of random weights is trained on the sample clips with captions. Each variant and seed runs in a separate
process, whose peak memory is printed: nothing, new heads over the frozen network, its own projections ("head"), its
last block, all. The score is recall@5 on the test clips: the share of queries with their own clip among the first five,
mean of both directions. With --full-size, a CLAP and a CLIP of full size and random weights (seed 0) train two steps of
eight pairs under AdamW in each variant of fine-tuning. A table contains the peak memory of the steps, and the wall and
processor seconds of the second step. Needs the extras `hub` and `lora`.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

OWN = {"method.heads": "none", "training.learning_rate": 3e-3}
WAYS: dict[str, dict[str, object]] = {
    "frozen start": OWN | {"method.blocks": 0, "training.learning_rate": 0.0, "training.epochs": 1},
    "new heads": {"method.freeze": "both", "method.hidden": 64, "training.learning_rate": 3e-3},
    "head": OWN | {"method.blocks": 0},
    "last block": OWN | {"method.blocks": 1, "training.learning_rate": 1e-3},
    "all": OWN | {"method.blocks": "all", "training.learning_rate": 1e-3},
}
FULL: dict[str, dict[str, Any]] = {
    "all": {},
    "last block": {"blocks": 1},
    "LoRA of rank 8": {"lora_rank": 8},
    "all, checkpointed": {"checkpointing": True},
    "LoRA of rank 8, checkpointed": {"lora_rank": 8, "checkpointing": True},
    "all, parts of 2 items": {"micro_batch": 2},
}
STEPS, PAIRS = 2, 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--full-size", action="store_true")
    parser.add_argument("--one", nargs=4, metavar=("WAY", "SEED", "EPOCHS", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--steps", nargs=3, metavar=("MODEL", "WAY", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(*arguments.one)
        return
    if arguments.steps:
        steps(*arguments.steps)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepared(folder, 10 if arguments.full_size else arguments.clips, full_size=arguments.full_size)
        if arguments.full_size:
            table(folder)
            return
        epochs, seeds = arguments.epochs, arguments.seeds
        for way in WAYS:
            found = [run(way, seed, epochs, folder) for seed in range(seeds)]
            recalls = [each["recall"] for each in found]
            spread = f" ± {statistics.stdev(recalls):.3f}" if seeds > 1 else ""
            print(
                f"{way}: recall@5 {statistics.mean(recalls):.3f}{spread} ({', '.join(f'{r:.3f}' for r in recalls)}), "
                f"trained numbers {found[0]['trained']:,.0f} of {found[0]['all']:,.0f}, "
                f"{found[0]['processor']:.0f} s of processor, peak memory {found[0]['gib']:.2f} GiB"
            )


def table(folder: Path) -> None:
    """Print a row for each full-size model and variant of fine-tuning."""
    print(
        "| model | trained | trained numbers | peak memory, GiB | seconds a step | processor seconds a step |\n"
        + "|---" * 6
        + "|"
    )
    for model in ("clap", "clip"):
        for way in FULL:
            found = child("--steps", model, way, str(folder))
            print(
                f"| {model.upper()} | {way} | {found['trained'] / 1e6:.1f} of {found['all'] / 1e6:.1f} M "
                f"| {found['gib']:.2f} | {found['wall']:.1f} | {found['processor']:.1f} |",
                flush=True,
            )


def steps(model: str, way: str, place: str) -> None:
    """Train steps of both towers of a model; print the measurements as JSON."""
    import numpy as np
    import torch

    from aadml.data.sources.network_items import ItemBatch
    from aadml.methods.towers.hub_input import HubInput
    from aadml.methods.towers.options import FineTuning

    modalities: tuple[Any, Any] = ("audio" if model == "clap" else "visual", "text")
    towers = [HubInput(f"hf:{Path(place) / model}", m, FineTuning(**FULL[way]), None) for m in modalities]
    draw, batches = np.random.default_rng(0), []
    for tower in towers:
        tower.train_blocks(frozen=False)
        tower.train()
        trial = tower.preparation.trial
        clips = [trial if trial.dtype.kind in "OU" else draw.permuted(trial, axis=0) for _ in range(PAIRS)]
        batches.append(ItemBatch(tuple(tuple(tower.preparation.items(c)[:1]) for c in clips), torch.ones(PAIRS) > 0))
    weights = [p for tower in towers for p in tower.parameters()]
    optimizer = torch.optim.AdamW([p for p in weights if p.requires_grad], lr=1e-5)
    torch.manual_seed(0)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak memory
    times = [(time.perf_counter(), time.process_time())]
    for _ in range(STEPS):
        optimizer.zero_grad()
        audio, text = (torch.nn.functional.normalize(t(b), dim=1) for t, b in zip(towers, batches, strict=True))
        torch.nn.functional.cross_entropy(10 * audio @ text.T, torch.arange(PAIRS)).backward()
        optimizer.step()
        times.append((time.perf_counter(), time.process_time()))
    wall, processor = ((times[-1][n] - times[1][n]) / (STEPS - 1) for n in (0, 1))
    print(json.dumps({
        "trained": sum(p.numel() for p in weights if p.requires_grad), "all": sum(p.numel() for p in weights),
        "wall": wall, "processor": processor,
        "gib": int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**20,
    }))  # fmt: skip


def prepared(folder: Path, clips: int, *, full_size: bool) -> None:
    """Write the clips and the network."""
    import csv

    import torch
    import transformers as t
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    import aadml

    manifest = aadml.sample_data(folder / "clips", clips=clips, seconds=1)
    with manifest.open() as file:
        captions = [row[f"caption_{n}"].lower() for row in csv.DictReader(file) for n in range(1, 6)]
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.train_from_iterator(captions, trainers.WordLevelTrainer(special_tokens=special))
    ends = [("[CLS]", 1), ("[SEP]", 2)]
    words.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    network = folder / "clap"
    t.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]",
        model_max_length=64,
    ).save_pretrained(network)  # fmt: skip
    torch.manual_seed(0)
    text = {"vocab_size": words.get_vocab_size(), "pad_token_id": 0, "max_position_embeddings": 66}
    if full_size:
        t.ClapModel(t.ClapConfig(text_config={**text, "vocab_size": 50_265})).save_pretrained(network)
        t.ClapFeatureExtractor(truncation="rand_trunc").save_pretrained(network)
        t.PreTrainedTokenizerFast.from_pretrained(network, model_max_length=77).save_pretrained(folder / "clip")
        t.CLIPImageProcessorPil().save_pretrained(folder / "clip")
        t.CLIPModel(t.CLIPConfig()).save_pretrained(folder / "clip")
        return
    text |= {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    sound = {
        "spec_size": 128, "patch_size": 4, "patch_stride": [4, 4], "num_mel_bins": 32, "hidden_size": 64,
        "window_size": 4, "patch_embeds_hidden_size": 8, "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2],
    }  # fmt: skip
    width = {"projection_dim": 32}
    config = t.ClapConfig(text_config={**text, **width}, audio_config={**sound, **width}, **width)
    tiny = t.ClapModel(config)
    with torch.no_grad():
        for weights in tiny.parameters():  # large enough that outputs depend on inputs
            weights += 0.1 * torch.randn(weights.shape)
    tiny.save_pretrained(network)
    t.ClapFeatureExtractor(
        feature_size=32, sampling_rate=16_000, hop_length=160, max_length_s=1, fft_window_size=512, frequency_max=8000,
        truncation="rand_trunc",
    ).save_pretrained(network)  # fmt: skip


def run(way: str, seed: int, epochs: int, folder: Path) -> dict[str, float]:
    """Train one variant in a separate process."""
    return child("--one", way, str(seed), str(epochs), str(folder))


def child(*arguments: str) -> dict[str, float]:
    """Run this script in a separate process; return the measurements that it prints."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=3600)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def one(way: str, seed: str, epochs: str, place: str) -> None:
    """Train and score; print the measurements as JSON."""
    import aadml

    folder = Path(place)
    settings: dict[str, object] = {
        "method.audio": f"hf:{folder / 'clap'}", "method.text": f"hf:{folder / 'clap'}",
        "method.dimension": 32, "training.batch": 30, "training.epochs": int(epochs), **WAYS[way],
    }  # fmt: skip
    used = time.process_time()
    manifest = folder / "clips" / "manifest.csv"
    model = aadml.fit(manifest, config="audio_text", settings=settings, seed=int(seed))
    parameters = list(model.method.learner.parameters())
    print(json.dumps({
        "recall": statistics.mean(one["hit_rate_at"]["5"] for one in model.evaluation["directions"].values()),
        "trained": sum(p.numel() for p in parameters if p.requires_grad), "all": sum(p.numel() for p in parameters),
        "processor": time.process_time() - used, "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
