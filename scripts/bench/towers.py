"""What training a pretrained network's own layers gains over its frozen start, and what memory it takes.

Usage: python scripts/bench/towers.py [--clips N] [--epochs N] [--seeds N] [--full-size]

A tiny CLAP of random weights is trained on the sample clips with captions, each way and seed in a process of its own,
whose peak memory is given: nothing, new heads over the frozen network, its own projections ("head"), its last block,
all. Scored are the test clips: the share of queries that have a clip of their own among the first five (recall@5), mean
of both directions. With --full-size the network has the size of CLAP-HTSAT, with random weights too, and each way takes
three steps of eight pairs: memory and processor time alone. Needs the extra `hub`.
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

OWN = {"method.heads": "none", "training.learning_rate": 3e-3}
WAYS: dict[str, dict[str, object]] = {
    "frozen start": OWN | {"method.blocks": 0, "training.learning_rate": 0.0, "training.epochs": 1},
    "new heads": {"method.freeze": "both", "method.hidden": 64, "training.learning_rate": 3e-3},
    "head": OWN | {"method.blocks": 0},
    "last block": OWN | {"method.blocks": 1, "training.learning_rate": 1e-3},
    "all": OWN | {"method.blocks": "all", "training.learning_rate": 1e-3},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--full-size", action="store_true")
    parser.add_argument("--one", nargs=4, metavar=("WAY", "SEED", "EPOCHS", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(*arguments.one)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepared(folder, 40 if arguments.full_size else arguments.clips, full_size=arguments.full_size)
        epochs, seeds = (1, 1) if arguments.full_size else (arguments.epochs, arguments.seeds)
        for way in WAYS:
            found = [run(way, seed, epochs, folder) for seed in range(seeds)]
            recalls = [each["recall"] for each in found]
            spread = f" ± {statistics.stdev(recalls):.3f}" if seeds > 1 else ""
            print(
                f"{way}: recall@5 {statistics.mean(recalls):.3f}{spread} ({', '.join(f'{r:.3f}' for r in recalls)}), "
                f"trained numbers {found[0]['trained']:,.0f} of {found[0]['all']:,.0f}, "
                f"{found[0]['processor']:.0f} s of processor, peak memory {found[0]['gib']:.2f} GiB"
            )


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
        for weights in tiny.parameters():  # large enough to tell inputs apart
            weights += 0.1 * torch.randn(weights.shape)
    tiny.save_pretrained(network)
    t.ClapFeatureExtractor(
        feature_size=32, sampling_rate=16_000, hop_length=160, max_length_s=1, fft_window_size=512, frequency_max=8000,
        truncation="rand_trunc",
    ).save_pretrained(network)  # fmt: skip


def run(way: str, seed: int, epochs: int, folder: Path) -> dict[str, float]:
    """Train one way in a process of its own."""
    command = [sys.executable, __file__, "--one", way, str(seed), str(epochs), str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=3600)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def one(way: str, seed: str, epochs: str, place: str) -> None:
    """Train and score; print the figures as JSON."""
    import aadml

    folder = Path(place)
    full = json.loads((folder / "clap" / "config.json").read_text())["audio_config"]["hidden_size"] > 64
    settings: dict[str, object] = {
        "method.audio": f"hf:{folder / 'clap'}", "method.text": f"hf:{folder / 'clap'}",
        "method.dimension": 512 if full else 32, "training.batch": 30, "training.epochs": int(epochs), **WAYS[way],
    }  # fmt: skip
    if full:
        settings |= {"method.captions": 1, "training.batch": 8, "training.learning_rate": 1e-5}
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
