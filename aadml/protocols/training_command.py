"""Training of an external encoder by a command, on an export of the training clips alone."""

from pathlib import Path

import torch

from aadml.comparison.clips import Splits
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.audit import TRAINED, Finding, Verdict, noise
from aadml.protocols.isolated_encoder import IsolatedEncoder, Order
from aadml.protocols.pipelines import exported
from aadml.protocols.subprocess_embedding import Results, in_fresh_process


def train_encoder(order: Order, splits: Splits, split: str, folder: Path, seconds: float) -> Finding:
    """Train an encoder twice by a command, in isolation, and return the finding on the training.

    The files of the first training run are written into `folder`. The second run starts from a data set with noise for
    the scored clips. Both runs read an export of the training clips. The scored clips could therefore reach a run only
    through a channel, such as a file. The verdict is "not checkable" if a channel was recorded, and "pass" otherwise.

    Args:
        order: the command, with {train} for the path of the feature file, and {output} for the path of the folder.
        splits: the data.
        split: name of the scored split.
        folder: folder that is created.
        seconds: time limit of one training run.

    Raises:
        InputError: no training clips, training clips that are scored, or a command that failed, took too long, wrote
            no file into its folder, or wrote a file outside its folder.
    """
    if split == "train" or not len(splits.train):
        problem = "the train split is scored" if split == "train" else "the data have none"
        remedy = "pass --split test" if split == "train" else "pass data with a train split"
        raise InputError(f"--train-command needs training clips that are not scored, but {problem}; {remedy}")
    changed = splits.having(split, noise(splits[split], (0,)))
    first, second = (_training(order, data, seconds) for data in (splits, changed))
    files, repeated = first.vectors[0], second.vectors[0]
    for name, content in files.items():
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise InputError(f"the training command wrote {name} outside its folder; write into {{output}} alone")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.numpy().tobytes())
    is_equal = files.keys() == repeated.keys() and all(torch.equal(files[name], repeated[name]) for name in files)
    evidence = f"the command trained twice on an export of {len(splits.train)} training clips, then with noise for the "
    outcome = "equal" if is_equal else "different (the training is random)"
    evidence += f"{split} clips; the files of both runs are {outcome}"
    channels = list(dict.fromkeys([*first.channels, *second.channels]))
    if channels:
        evidence = f"{evidence}; the command could have received data by {channels[0]}"
        return Finding(TRAINED, Verdict.NOT_CHECKABLE, evidence)
    return Finding(TRAINED, Verdict.PASS, evidence)


def _training(order: Order, splits: Splits, seconds: float) -> Results:
    started: list[IsolatedEncoder] = []

    def work() -> list[dict[str, torch.Tensor]]:
        started.append(IsolatedEncoder(order))
        files = started[0]({"train": exported(splits.train, "train")})
        return [{name: torch.tensor(content) for name, content in files.items()}]

    return in_fresh_process(work, seconds=seconds, channels=lambda: started[0].channels)
