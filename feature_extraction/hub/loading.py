"""Reading the parts of a model out of its files: its network, with or without weights, and what prepares its inputs."""

from collections.abc import Callable, Sequence
from functools import partial
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.transformers_library import silent, transformers_for
from aadml.feature_extraction.hub.families import PictureTower, SoundTower, TextTower
from aadml.feature_extraction.hub.snapshot import Snapshot

Tower = SoundTower | PictureTower | TextTower

UNREADABLE = (
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


def network_of(snapshot: Snapshot, tower: Tower) -> Any:
    """Read the network of a tower with its weights, in float32 and evaluation mode.

    Raises:
        InputError: its files cannot be read, or lack a weight of the tower.
    """
    kind, inside = _kind(snapshot, tower)
    read = partial(
        kind.from_pretrained, snapshot.folder, local_files_only=True, output_loading_info=True, dtype=torch.float32,
        use_safetensors=snapshot.weights[0].suffix == ".safetensors", weights_only=True, **inside,
    )  # fmt: skip
    network = _part(_complete(snapshot, read), tower)
    if getattr(network.config, "apply_spec_augment", False):
        network.config.apply_spec_augment = False  # drawn by NumPy's own generator while training; no seed reaches it
    return network


def blank_network_of(snapshot: Snapshot, tower: Tower) -> Any:
    """Build the network of a tower whose weights are to be put in place, from its configuration alone."""
    kind, inside = _kind(snapshot, tower)
    library = transformers_for(f"hf:{snapshot.model}")
    try:
        config = inside.get("config") or library.AutoConfig.from_pretrained(
            snapshot.folder, local_files_only=True, trust_remote_code=False
        )
        wanted: Any = getattr(kind, "config_class", None)
        if wanted is not None and not isinstance(config, wanted):
            config = wanted.from_pretrained(snapshot.folder, local_files_only=True)
        with silent(library):
            return _part(kind(config).eval(), tower)
    except UNREADABLE as error:
        raise InputError(f"{snapshot.model}: its config.json makes no network ({first_line(error)})") from error


def _kind(snapshot: Snapshot, tower: Tower) -> tuple[Any, JsonObject]:
    """Find the class of a tower's network, and how it is read out of the files of a larger model."""
    transformers = transformers_for(f"hf:{snapshot.model}")
    kind = getattr(transformers, tower.network, None)
    if kind is None:
        raise InputError(
            f"{snapshot.model}: transformers {transformers.__version__} has no {tower.network}; install a newer one"
        )
    return kind, _inside(snapshot, transformers, getattr(tower, "within", ""))


def _part(network: Any, tower: Tower) -> Any:
    return getattr(network, getattr(tower, "part", "") or "", network)


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
            untrusted = {"trust_remote_code": False} if kind.startswith("Auto") else {}
            return getattr(transformers, kind).from_pretrained(snapshot.folder, local_files_only=True, **untrusted)
    except UNREADABLE as error:
        raise InputError(f"{snapshot.model}: its {kind} cannot be loaded ({first_line(error)})") from error


def _inside(snapshot: Snapshot, transformers: Any, within: str) -> JsonObject:
    """Say how a network is read out of the files of a larger model."""
    if not within:
        return {}
    try:
        config = transformers.AutoConfig.from_pretrained(
            snapshot.folder, local_files_only=True, trust_remote_code=False
        )
        return {"config": getattr(config, f"{within}_config"), "key_mapping": {rf"^{within}_model\.": ""}}
    except UNREADABLE as error:
        raise InputError(f"{snapshot.model}: its config.json cannot be read ({first_line(error)})") from error


def _complete(snapshot: Snapshot, read: Callable[[], Any]) -> Any:
    """Read a network all of whose weights are in its files."""
    try:
        with silent(transformers_for(f"hf:{snapshot.model}")):
            network, found = read()
    except UNREADABLE as error:
        raise InputError(f"{snapshot.model}: cannot be loaded ({first_line(error)})") from error
    absent = sorted(found["missing_keys"])
    if absent:
        raise InputError(
            f"{snapshot.model}: its files hold no weights for {absent[0]} ({len(absent)} such); "
            "are they another network's?"
        )
    return network


def first_line(error: Exception) -> str:
    """Say what an error of `transformers` says, in one line."""
    if "ignore_mismatched_sizes" in str(error):
        return "its weights have other shapes than its config.json says"
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
