"""Loading of a model's network, with or without weights, and of the processor of its inputs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from operator import attrgetter
from typing import Any

import torch

from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.ground.transformers_library import silent, transformers_for
from aadml.feature_extraction.hub.families import Tower
from aadml.feature_extraction.hub.snapshot import Snapshot


@contextmanager
def refused(snapshot: Snapshot, problem: str) -> Iterator[None]:
    """Convert exceptions of `transformers` within the context to an `InputError` with the model and the problem."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # `transformers` has no common class of errors
        advice = "download the model again, or choose another model"
        if isinstance(error, ImportError):
            advice = "install the missing package"
        elif isinstance(error, (MemoryError, torch.OutOfMemoryError)):
            problem = "the model does not fit into the memory"
            advice = "free some memory, or use another device"
        raise InputError(f"{snapshot.model}: {problem} ({_first_line(error)}); {advice}") from error


def network_of(snapshot: Snapshot, tower: Tower, **settings: float) -> Any:
    """Load the network of a tower with its weights, in float32; `settings` are options of the network's class.

    Raises:
        InputError: the network cannot be loaded, or the files lack a weight of the tower.
    """
    network_class, config = class_of(snapshot, tower)
    names = {rf"^{tower.within}_model\.": ""} if tower.within else None
    with refused(snapshot, "the model cannot be loaded"), silent(transformers_for(f"hf:{snapshot.model}")):
        network, report = network_class.from_pretrained(
            snapshot.folder, local_files_only=True, output_loading_info=True, dtype=torch.float32,
            use_safetensors=snapshot.weights[0].suffix == ".safetensors", weights_only=True, config=config,
            key_mapping=names, **settings,
        )  # fmt: skip
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            f"{snapshot.model}: the files lack weights of {tower.network} ({len(missing)} in total, the first is "
            f"{missing[0]}); pass a model with this network"
        )
    network = _used(network, tower)
    if getattr(network.config, "apply_spec_augment", hasattr(network.config, "mask_time_prob")):  # True if unset
        network.config.apply_spec_augment = False  # draws from NumPy's generator in training, which no seed controls
    return network


def blank_network_of(snapshot: Snapshot, tower: Tower) -> Any:
    """Build the network of a tower from its configuration, with random weights that the caller replaces.

    Raises:
        InputError: the configuration does not describe the network, or a package is not installed.
    """
    network_class, config = class_of(snapshot, tower)
    library = transformers_for(f"hf:{snapshot.model}")
    with refused(snapshot, "its config.json does not describe a network"):
        config = config or configuration_of(snapshot)
        if not isinstance(config, network_class.config_class):
            config = network_class.config_class.from_pretrained(snapshot.folder, local_files_only=True)
        with silent(library):
            return _used(network_class(config).eval(), tower)


def _used(network: Any, tower: Tower) -> Any:
    """Return the part of a network that a tower uses, with the tower's implementation of the attention."""
    if tower.attention:
        network.set_attn_implementation(tower.attention)
    return getattr(network, tower.part, network)


def processor_of(snapshot: Snapshot, kind: str, needs: Sequence[str], **options: str) -> Any:
    """Load the processor of the inputs of a model.

    Args:
        snapshot: files of the model.
        kind: class of `transformers` that chooses the processor ("AutoTokenizer").
        needs: file names. At least one of the files must exist; `transformers` would replace missing files with
            defaults.
        options: options of the method `from_pretrained` of the class.

    Raises:
        InputError: there is no such file, or the processor cannot be loaded.
    """
    if not any((snapshot.folder / name).is_file() for name in needs):
        raise InputError(
            f"{snapshot.model} contains none of {', '.join(needs)}; copy one of these files beside the weights"
        )
    transformers = transformers_for(f"hf:{snapshot.model}")
    with refused(snapshot, f"its {kind} cannot be loaded"), silent(transformers):
        processor = getattr(transformers, kind)
        return processor.from_pretrained(snapshot.folder, local_files_only=True, trust_remote_code=False, **options)


def configuration_of(snapshot: Snapshot, part: str = "") -> Any:
    """Read the configuration of a model, or a part of the configuration.

    Args:
        snapshot: files of the model.
        part: path of the part ("vision_config.num_frames"); "" for the whole configuration.

    Returns:
        The configuration as an object of `transformers`, or the value of the part.

    Raises:
        InputError: the configuration cannot be read, or has no such part.
    """
    config = transformers_for(f"hf:{snapshot.model}").AutoConfig
    with refused(snapshot, "its config.json cannot be read"):
        content = config.from_pretrained(snapshot.folder, local_files_only=True, trust_remote_code=False)
        return attrgetter(part)(content) if part else content


def class_of(snapshot: Snapshot, tower: Tower) -> tuple[Any, Any]:
    """Return the class and the configuration of a tower's network.

    The configuration is None for a network that is not inside a larger model.

    Raises:
        InputError: a class that `transformers` does not have, a needed package that cannot be imported, or an
            unreadable configuration.
    """
    transformers = transformers_for(f"hf:{snapshot.model}")
    network_class = getattr(transformers, tower.network, None)
    if network_class is None:
        raise InputError(
            f"{snapshot.model}: transformers {transformers.__version__} has no {tower.network}; install a newer "
            "version of transformers"
        )
    try:
        if tower.needs:
            import_module(tower.needs)
    except (ImportError, RuntimeError) as error:  # RuntimeError: a torchvision that does not match torch
        raise InputError(
            f"{snapshot.model}: its network needs {tower.needs} and torchvision, and {tower.needs} cannot be imported "
            f"({_first_line(error)}); install both in versions for the installed torch, or use another model"
        ) from error
    return network_class, configuration_of(snapshot, f"{tower.within}_config") if tower.within else None


def _first_line(error: Exception) -> str:
    """Return the first line of an error of `transformers`; a short text if weights contradict the configuration."""
    if "ignore_mismatched_sizes" in str(error):
        return "the shapes of its weights contradict its config.json"
    return cause(error)
