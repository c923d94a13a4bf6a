"""Check that a test fails if the training of a certified method of table 1 is wrong.

    PYTHONPATH="$PWD" python scripts/soak/training_mutations.py

Each mutant is one changed line in a copy of the tree: optimizer, learning rate, schedule, activation, default width,
margin or weight, dropout or initialization of a method. The tests of published values, of networks and of training run
on the copy. Writes docs/lab/soak/training_mutations.csv, whose rows scripts/fidelity.py counts.
"""

import csv
import os
import re
import shutil
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "lab" / "soak" / "training_mutations.csv"
TESTS = ("methods/test_published_values", "methods/test_networks", "fidelity/test_certificates")
NORMAL = "; nn.Linear.reset_parameters = lambda layer: nn.init.normal_(layer.weight)"
COPIED = ("aadml", "feature_extraction", "configs", "tests", "pyproject.toml")


class Mutant(NamedTuple):
    """A changed line of a file of the product."""

    method: str
    kind: str
    path: str
    before: str
    after: str


def _of(method: str, path: str, training: str, changes: dict[str, tuple[str, str]]) -> list[Mutant]:
    """Return the mutants of a method: of its code, and of the line `training` of its config."""
    config = f"configs/{method.replace('-', '_')}.yaml"
    rate = re.sub(r"learning_rate: [\d.]+", "learning_rate: 0.002", training)
    wrong = {
        "optimizer": "training: {optimizer: sgd, " + re.sub(r"optimizer: \w+, ", "", training),
        "learning rate": "training: {" + (rate if rate != training else "learning_rate: 0.002, " + training),
        "schedule": "training: {schedule: cosine, " + training,
    }
    of_config = [Mutant(method, kind, config, "training: {" + training, text) for kind, text in wrong.items()]
    return of_config + [Mutant(method, kind, path, before, after) for kind, (before, after) in changes.items()]


MUTANTS = (
    *_of("dscmr", "aadml/methods/label_space/dscmr.py", "epochs: 500, batch: 100, betas: [0.5, 0.999]}", {
        "activation": ('hidden, activation="relu"', 'hidden, activation="tanh"'),
        "default width": ("(2048,),", "(1024,),"),
        "weight of a term": ("alpha: Weight = 1e-3", "alpha: Weight = 1e-2"),
        "dropout": ('activation="relu", last=True', 'activation="relu", dropout=0.1, last=True'),
        "initialization": (
            "self.alpha, self.beta = alpha, beta",
            "self.alpha, self.beta = alpha, beta; nn.init.normal_(self.shared.weight)",
        ),
    }),
    *_of("vae-cca", "aadml/methods/correlation/vae_cca.py", "epochs: 500, batch: 128, betas: [0.5, 0.999]}", {
        "activation": ('activation="relu"', 'activation="tanh"'),
        "default width": ("hidden: Width = 512", "hidden: Width = 256"),
        "weight of a term": ('"vae": 1e-4', '"vae": 1e-3'),
        "dropout": ('activation="relu", last=True', 'activation="relu", dropout=0.1, last=True'),
        "initialization": (
            "self.weights = WEIGHTS", "nn.init.normal_(self.shared.weight); self.weights = WEIGHTS"
        ),
    }),
    *_of("acmr", "aadml/methods/adversarial/acmr.py", "epochs: 50, batch: 64, betas: [0.5, 0.999]}", {
        "activation": ('activation="tanh"', 'activation="relu"'),
        "default width": ("= (512, 100)", "= (256, 100)"),
        "margin": (" = 0.1,", " = 0.2,"),
        "weight of a term": ("LABEL_WEIGHT = 100.0", "LABEL_WEIGHT = 10.0"),
        "dropout": ('activation="tanh")', 'activation="tanh", dropout=0.1)'),
        "initialization": (
            "self.adv_weight = adv_weight", "self.adv_weight = adv_weight; nn.init.normal_(self.classifier.weight)"
        ),
    }),
    *_of(
        "dcca", "aadml/methods/correlation/dcca.py",
        "epochs: 100, batch: 200, optimizer: rmsprop, learning_rate: 0.001, drop_last: true}", {
        "activation": ('activation="sigmoid"', 'activation="tanh"'),
        "default width": ("= (128, 128, 64)", "= (128, 64, 64)"),
        "ridge": ("= 1e-3\n", "= 1e-2\n"),
        "dropout": ("dropout: Dropout = 0.2", "dropout: Dropout = 0.1"),
        "initialization": (
            "self.pair_weight = pair_weight",
            f"self.pair_weight = pair_weight{NORMAL}",
        ),
    }),
    *_of("tnn-c-cca", "aadml/methods/correlation/tnn_c_cca.py", "epochs: 10, batch: 45, learning_rate: 0.001}", {
        "activation": ('activation="tanh"', 'activation="relu"'),
        "last sigmoid": (", nn.Sigmoid())", ")"),
        "default width": ("(100, 100, 100),", "(100, 100, 50),"),
        "margin": ("] = 0.5", "] = 0.3"),
        "dropout": ("dropout: Dropout = 0.1", "dropout: Dropout = 0.2"),
        "initialization": (
            "sizes = (dimension, *hidden, dimension)",
            f"sizes = (dimension, *hidden, dimension){NORMAL}",
        ),
    }),
    *_of("clip", "aadml/methods/pairwise/clip.py", "epochs: 100}", {
        "activation": ('activation="relu", dropout', 'activation="tanh", dropout'),
        "default width": ("(1024,),", "(512,),"),
        "temperature": (" = 0.07,", " = 0.1,"),
        "dropout": ("dropout: Dropout = 0.1", "dropout: Dropout = 0.2"),
        "initialization": (
            "self.learn_scale(self.objective, temperature)",
            "self.learn_scale(self.objective, temperature); [p.data.mul_(2) for p in self.heads.parameters()]",
        ),
    }),
    *_of(
        "c-dcca", "aadml/methods/correlation/dcca.py",
        "epochs: 100, batch: 200, optimizer: rmsprop, learning_rate: 0.001, drop_last: true}", {
        "activation": ('activation="sigmoid"', 'activation="tanh"'),
        "default width": ("hidden: Layers = (100, 100, 100)", "hidden: Layers = (100, 100, 50)"),
        "outputs": ("CorrelationOptions(outputs=100)", "CorrelationOptions(outputs=50)"),
        "weight of pairs": ("pair_weight: Share = 0.2", "pair_weight: Share = 0.5"),
        "cross-covariance": ("options=options, pair_weight=pair_weight)", "options=options, pair_weight=None)"),
        "ridge": ("= 1e-3\n", "= 1e-2\n"),
        "dropout": ("dropout: Dropout = 0.2", "dropout: Dropout = 0.1"),
        "initialization": (
            "self.pair_weight = pair_weight",
            f"self.pair_weight = pair_weight{NORMAL}",
        ),
    }),
    *_of("msnsca", "aadml/methods/label_space/msnsca.py", "epochs: 200, batch: 128}", {
        "activation": ("nn.ReLU(), DropoutLayer(dropout), nn.Linear(hidden",
                       "nn.Tanh(), DropoutLayer(dropout), nn.Linear(hidden"),
        "default width": ("visual_hidden: Width = 512", "visual_hidden: Width = 256"),
        "weight of a term": ('"apart": 0.1', '"apart": 0.2'),
        "weight of centers": ("] = 0.01", "] = 0.1"),
        "dropout": ("dropout: Dropout = 0.5", "dropout: Dropout = 0.2"),
        "initialization": (
            "self.weights = WEIGHTS", "nn.init.normal_(self.shared.weight); self.weights = WEIGHTS"
        ),
    }),
    Mutant("msnsca", "kernels", "aadml/methods/label_space/scales.py", "KERNELS = (3, 5, 7)", "KERNELS = (3, 5, 9)"),
    *(
        Mutant("agah", kind, "configs/agah.yaml", before, after)
        for kind, before, after in (
            ("optimizer", "optimizer: adamax", "optimizer: adam"),
            ("learning rate", "learning_rate: 0.001", "learning_rate: 0.002"),
            ("weight decay", "weight_decay: 0.0005", "weight_decay: 0.0"),
            ("schedule", "schedule: step", "schedule: cosine"),
        )
    ),
    *(
        Mutant("agah", kind, "aadml/methods/adversarial/agah.py", before, after)
        for kind, before, after in (
            ("activation", 'activation="relu", last=True', 'activation="tanh", last=True'),
            ("default width", "= (4096, 512)", "= (2048, 512)"),
            ("margin", "] = 0.3", "] = 0.5"),
            ("weight of a term", '"code": 1e-3', '"code": 1e-2'),
            ("weight of the penalty", "PENALTY = 10.0", "PENALTY = 1.0"),
            ("attention", "ATTENTION_SLOPE = 5.0", "ATTENTION_SLOPE = 1.0"),
            ("optimizer of the critics", "betas=(0.5, 0.9)", "betas=(0.9, 0.999)"),
            ("sign of the critics", "-self.critics[m](features[o]).mean()", "self.critics[m](features[o]).mean()"),
            ("dropout", 'activation="relu", last=True', 'activation="relu", dropout=0.1, last=True'),
            (
                "initialization", "self.critic_learning_rate = critic_learning_rate",
                "self.critic_learning_rate = critic_learning_rate; nn.init.normal_(self.hashes[names[0]].weight)",
            ),
        )
    ),
)  # fmt: skip


def caught(mutant: Mutant | None, tree: Path) -> str:
    """Return the name of the first test that fails on a mutant; "" if none does."""
    original = ""
    if mutant:
        original = (tree / mutant.path).read_text(encoding="utf-8")
        if original.count(mutant.before) != 1:
            raise SystemExit(f"{mutant.path} must have {mutant.before!r} once; change the mutant")
        (tree / mutant.path).write_text(original.replace(mutant.before, mutant.after, 1), encoding="utf-8")
    names = {mutant.method, mutant.method.replace("-", "_")} if mutant else {"dscmr", "clip"}
    chosen = (
        f"(test_published_values or test_networks or ((reproduced or second) and training)) and ({' or '.join(names)})"
    )
    options = ["-q", "-x", "-p", "no:cacheprovider", f"--rootdir={tree}", "-m", "slow or not slow", "-k", chosen]
    log = tree.with_name("log.txt")
    trial = get_context("fork").Process(
        target=_test, args=(tree, log, [*options, *(f"tests/{name}.py" for name in TESTS)])
    )
    trial.start()
    trial.join()
    if mutant:
        (tree / mutant.path).write_text(original, encoding="utf-8")
    said = log.read_text(encoding="utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) \S+::(\w+)", said, re.MULTILINE)
    if trial.exitcode not in (0, 1) or bool(trial.exitcode) != bool(failed):
        raise SystemExit(said)
    return failed[1] if failed else ""


def _test(tree: Path, log: Path, options: list[str]) -> None:
    """Run tests on the tree in this process, a fork that has imported torch but no module of aadml."""
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        os.chdir(tree)
        sys.path.insert(0, str(tree))
        sys.dont_write_bytecode = True
        status = pytest.main(options)
        sys.stdout.flush()
    os._exit(int(status))


def known() -> list[list[str]]:
    """Return the rows of the mutants that were tried before; remove the table to try them again."""
    if not RESULTS.is_file():
        return []
    with RESULTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    same = [[*m[:3], m.before.strip(), m.after.strip()] for m in MUTANTS[: len(rows)]]
    return rows if [row[:5] for row in rows] == same else []


def write(rows: list[list[str]]) -> None:
    """Write the table."""
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("method", "kind", "file", "before", "after", "caught by"))
        writer.writerows(rows)


def copied(folder: Path) -> Path:
    """Copy the product and its tests into a folder, and return the root of the copy."""
    tree = folder / "tree"
    tree.mkdir()
    (folder / "shared").symlink_to((ROOT.parent / "shared").resolve())
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree / name)
    return tree


def main() -> None:
    """Try every mutant, and write the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        if failing := caught(None, tree):
            raise SystemExit(f"{failing} fails without a mutant")
        rows = known()
        for mutant in MUTANTS[len(rows) :]:
            rows.append([*mutant[:3], mutant.before.strip(), mutant.after.strip(), caught(mutant, tree)])
            print(*rows[-1], sep=" | ", flush=True)
            write(rows)
    print(f"{sum(bool(row[-1]) for row in rows)} of {len(rows)} mutants were caught")


if __name__ == "__main__":
    main()
