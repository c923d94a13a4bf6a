"""Loading a tower of a model, and running it over items so that none depends on the items beside it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pickle import UnpicklingError
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor

from feature_extraction.ground.errors import InputError
from feature_extraction.ground.json_values import JsonObject
from feature_extraction.ground.tables import lookup
from feature_extraction.hub.families import FAMILIES, Item, PictureTower, Pool, SoundTower, TextTower
from feature_extraction.hub.snapshot import Snapshot, remember
from feature_extraction.network_run import bfloat16_units
from feature_extraction.transformers_library import silent, transformers_for

Tower = SoundTower | PictureTower | TextTower
T = TypeVar("T", SoundTower, PictureTower, TextTower)

_UNREADABLE = (
    OSError,
    ValueError,
    RuntimeError,
    KeyError,
    TypeError,
    AttributeError,
    ImportError,
    SafetensorError,
    UnpicklingError,
)
"""What `transformers` raises of files that are missing, damaged or of another kind."""


def tower_of(snapshot: Snapshot, modality: str, kind: type[T]) -> T:
    """Find the tower of a modality in the family of a model.

    Raises:
        InputError: the table does not know the family, or it has no such tower.
    """
    known = sorted(name for name, family in FAMILIES.items() if getattr(family, modality) is not None)
    found = getattr(FAMILIES.get(snapshot.model_type), modality, None)
    if not isinstance(found, kind):
        what = f"a model of type '{snapshot.model_type}'" if snapshot.model_type else "a model of no stated type"
        raise InputError(
            f"--{modality} hf:{snapshot.model}: is {what}, of which no {modality} features are known how to be made; "
            f"known are {', '.join(known)}; for others write an extractor of your own (docs/encoders.md)"
        )
    return found


def chosen_pooling(tower: Tower, pooling: str | None) -> tuple[str, Pool]:
    """Choose how outputs become a vector: by name, else the first way of the table."""
    name = pooling or next(iter(tower.poolings))
    return name, lookup(tower.poolings, name, "pooling of this network")


def processor_of(snapshot: Snapshot, kind: str, needs: Sequence[str]) -> Any:
    """Load what prepares the inputs of a model.

    Args:
        snapshot: of the model.
        kind: class of `transformers` ("AutoTokenizer").
        needs: names of files of which one must be there; `transformers` would make up what is missing.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    if not any((snapshot.folder / name).is_file() for name in needs):
        raise InputError(f"{snapshot.model}: {' or '.join(needs)} is missing beside the weights; copy it there")
    transformers = transformers_for(f"hf:{snapshot.model}")
    try:
        with silent(transformers):
            return getattr(transformers, kind).from_pretrained(snapshot.folder, local_files_only=True)
    except _UNREADABLE as error:
        raise InputError(f"{snapshot.model}: its {kind} cannot be loaded ({_line(error)})") from error


@dataclass(frozen=True)
class Runner:
    """A tower that is ready to run.

    Attributes:
        network: in evaluation mode, on its device.
        pool: makes one vector of its outputs.
        device: that it runs on.
        half: whether it multiplies in bfloat16.
        batch: items that are run at once.
    """

    network: Any
    pool: Pool
    device: torch.device
    half: bool
    batch: int

    def __call__(self, clips: Sequence[Sequence[Item]], *, filled: bool = True) -> list[NDArray[np.float32]]:
        """Describe items, clip by clip: (t, d) for each clip of t items.

        Items of one shape are run together in batches of one fixed size, the last of which is filled up with copies:
        kernels are chosen by shape, and another kernel rounds otherwise.

        Args:
            clips: items of each clip.
            filled: whether all items of a network have one shape; of those that have not, each is run alone.
        """
        items = [item for clip in clips for item in clip]
        groups: dict[object, list[int]] = {}
        for number, item in enumerate(items):
            shape = tuple((name, values.shape) for name, values in item.items())
            groups.setdefault(shape if filled else number, []).append(number)
        rows: dict[int, NDArray[np.float32]] = {}
        for numbers in groups.values():
            size = self.batch if filled else 1
            for start in range(0, len(numbers), size):
                part = numbers[start : start + size]
                batch = [items[number] for number in part]
                found = self._run([*batch, *batch[:1] * (size - len(batch))])
                rows.update(zip(part, found, strict=False))
        ends = np.cumsum([len(clip) for clip in clips])
        return [np.stack([rows[n] for n in range(end - len(clip), end)]) for end, clip in zip(ends, clips, strict=True)]

    @torch.inference_mode()
    def _run(self, items: Sequence[Item]) -> NDArray[np.float32]:
        batch = {name: torch.from_numpy(np.stack([item[name] for item in items])).to(self.device) for name in items[0]}
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            found: Tensor = self.pool(self.network, batch)
        rows: NDArray[np.float32] = found.float().cpu().numpy()
        return rows


def load(
    snapshot: Snapshot, tower: Tower, pool: Pool, device: torch.device, precision: str, batch: int
) -> tuple[Runner, JsonObject]:
    """Load a tower.

    Args:
        snapshot: of the model.
        tower: of its family.
        pool: of the tower.
        device: to run on.
        precision: "float32", "bfloat16" or "auto".
        batch: items that are run at once.

    Returns:
        What runs it, and the parameters that say which network it is.

    Raises:
        InputError: its files cannot be read, or lack a weight of the tower.
    """
    transformers = transformers_for(f"hf:{snapshot.model}")
    kind = getattr(transformers, tower.network, None)
    if kind is None:
        raise InputError(
            f"{snapshot.model}: transformers {transformers.__version__} has no {tower.network}; install a newer one"
        )
    inside = _inside(snapshot, transformers, getattr(tower, "within", ""))
    read = partial(
        kind.from_pretrained, snapshot.folder, local_files_only=True, output_loading_info=True, dtype=torch.float32,
        use_safetensors=snapshot.weights[0].suffix == ".safetensors", weights_only=True, **inside,
    )  # fmt: skip
    network = _complete(snapshot, transformers, read)
    network = getattr(network, getattr(tower, "part", "") or "", network)
    half = precision == "bfloat16" or (precision == "auto" and bfloat16_units(device))
    checksum = snapshot.weights_checksum()
    remember(snapshot, checksum)
    parameters: JsonObject = {
        "family": snapshot.model_type,
        "network": tower.network,
        "precision": "bfloat16" if half else "float32",
        "config": snapshot.config_checksum(),
        "weights": checksum,
    }
    return Runner(network.eval().requires_grad_(False).to(device), pool, device, half, batch), parameters


def dimension(
    snapshot: Snapshot, describe: Callable[[Sequence[NDArray[Any]]], list[NDArray[np.float32]]], clip: NDArray[Any]
) -> int:
    """Try a network out on one clip; return how wide its description is.

    Raises:
        InputError: the network cannot run on what its own files make of the clip.
    """
    try:
        return int(describe([clip])[0].shape[1])
    except _UNREADABLE as error:
        raise InputError(f"{snapshot.model}: its network and its preparation do not fit ({_line(error)})") from error


def about(snapshot: Snapshot, *packages: str) -> JsonObject:
    """Say where a model comes from, and which versions of packages ran it."""
    from importlib.metadata import version

    return {**snapshot.provenance(), **{name: version(name) for name in ("torch", "transformers", *packages)}}


def _inside(snapshot: Snapshot, transformers: Any, within: str) -> JsonObject:
    """Say how a network is read out of the files of a larger model."""
    if not within:
        return {}
    try:
        config = transformers.AutoConfig.from_pretrained(snapshot.folder, local_files_only=True)
        return {"config": getattr(config, f"{within}_config"), "key_mapping": {rf"^{within}_model\.": ""}}
    except _UNREADABLE as error:
        raise InputError(f"{snapshot.model}: its config.json cannot be read ({_line(error)})") from error


def _complete(snapshot: Snapshot, transformers: Any, read: Callable[[], Any]) -> Any:
    """Read a network all of whose weights are in its files."""
    try:
        with silent(transformers):
            network, found = read()
    except _UNREADABLE as error:
        raise InputError(f"{snapshot.model}: cannot be loaded ({_line(error)})") from error
    absent = sorted(found["missing_keys"])
    if absent:
        raise InputError(
            f"{snapshot.model}: its files hold no weights for {absent[0]} ({len(absent)} such); "
            "are they another network's?"
        )
    return network


def _line(error: Exception) -> str:
    if "ignore_mismatched_sizes" in str(error):
        return "its weights have other shapes than its config.json says"
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def fixed(values: JsonObject) -> JsonObject:
    """Give settings as plain JSON: tuples become lists."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
