"""The files of a model: in a folder of one's own, or fetched from the Hugging Face Hub into its cache."""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256 as hashed
from pathlib import Path
from tempfile import TemporaryDirectory

from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.transformers_library import refuse_kernels, transformers_for
from aadml.feature_extraction.weights.table import weights_folder
from aadml.feature_extraction.weights.tensor_files import sha256

_log = logging.getLogger(__name__)

_CHECKSUM = re.compile("[0-9a-f]{64}")
_SMALL = ("*.json", "*.txt", "*.model", "README.md", "LICENSE*")
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")  # in the order of preference
_SAYS_NOTHING = ("_name_or_path", "transformers_version", "architectures", "torch_dtype", "dtype")
_DATA = {".json", ".txt", ".model", ".jinja"}
"""Endings of the small files of a model that are laid out again."""


@dataclass(frozen=True)
class Snapshot:
    """A model on this disk.

    Attributes:
        folder: that holds its files.
        model: its name on the hub, or that of the folder.
        revision: the commit on the hub; None for a folder of one's own.
        license: that its card states.
        config: the content of `config.json`.
        weights: its weight files.
    """

    folder: Path
    model: str
    revision: str | None
    license: str
    config: JsonObject
    weights: tuple[Path, ...]

    @property
    def model_type(self) -> str:
        """The architecture that the model declares."""
        return str(self.config.get("model_type", ""))

    def checksums(self) -> JsonObject:
        """Give the SHA-256 of every file that is read, by its name."""
        small = {path for pattern in _SMALL for path in self.folder.glob(pattern) if path.is_file()}
        return {str(path.relative_to(self.folder)): sha256(path) for path in sorted({*small, *self.weights})}

    def small_files(self) -> dict[str, bytes]:
        """Read what prepares inputs: configurations, vocabularies, the settings of a tokenizer; by name."""
        paths = {path for pattern in ("*.json", "*.txt", "*.model") for path in self.folder.glob(pattern)}
        return {path.name: path.read_bytes() for path in sorted(paths) if not path.name.endswith(".index.json")}

    def weights_checksum(self) -> str:
        """Give the SHA-256 of the weight file; of several, that of their checksums."""
        found = [sha256(path) for path in self.weights]
        return found[0] if len(found) == 1 else hashed("".join(found).encode()).hexdigest()

    def config_checksum(self) -> str:
        """Give the SHA-256 of what `config.json` says of the network."""
        kept = {key: value for key, value in self.config.items() if key not in _SAYS_NOTHING}
        return hashed(json.dumps(kept, sort_keys=True).encode()).hexdigest()

    def provenance(self) -> JsonObject:
        """Say where the model comes from; `source` is how it is found again."""
        found: JsonObject = {"model": self.model, "license": self.license, "files": self.checksums()}
        if self.revision is None:
            return {**found, "source": {"model": self.weights_checksum()}}
        return {**found, "revision": self.revision, "source": {"model": self.model, "revision": self.revision}}


def find(model: str, revision: str | None) -> Snapshot:
    """Find the files of a model, and fetch them where they are on the hub alone.

    Args:
        model: a folder, a name on the hub ("laion/clap-htsat-unfused"), or the checksum of weights that were used
            before on this machine.
        revision: a branch, tag or commit on the hub; None: the newest.

    Raises:
        InputError: no such model, no access to it, or files that it lacks.
    """
    if not model:
        raise InputError("no model is named; write hf:MODEL, a folder or a name on the Hugging Face Hub")
    folder = _noted(model) if _CHECKSUM.fullmatch(model) else Path(model).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise InputError(f"{model}: is a folder, which has no revision '{revision}'")
        return _opened(folder, folder.resolve().name, None)
    if folder.exists() or folder.is_absolute() or model.count("/") != 1:
        raise InputError(f"{model}: no such folder, and no name on the Hugging Face Hub (OWNER/NAME)")
    folder, commit = _fetched(model, revision)
    return _opened(folder, model, commit)


@contextmanager
def restored(model: str, files: Mapping[str, bytes]) -> Iterator[Snapshot]:
    """Lay out the small files of a model again, without its weights, as long as the context lasts.

    Args:
        model: its name.
        files: by name, `config.json` among them.
    """
    with TemporaryDirectory() as place:
        config = json.loads(files["config.json"])
        refuse_kernels(config, model)
        for name, content in files.items():
            if Path(name).suffix in _DATA:  # never code
                (Path(place) / Path(name).name).write_bytes(content)
        yield Snapshot(Path(place), model, None, "", config, ())


def remember(snapshot: Snapshot, checksum: str) -> None:
    """Note where weights lie, so that a model that was trained on their features finds them by their checksum."""
    known, place = _known(), str(snapshot.folder.resolve())
    if known.get(checksum) == place:
        return
    try:
        write_text(_register(), json.dumps({**known, checksum: place}, indent=1, sort_keys=True))
    except (OSError, InputError) as error:
        _log.warning("%s: not noted where its weights are (%s)", snapshot.model, error)


def _noted(checksum: str) -> Path:
    folder = Path(_known().get(checksum, ""))
    if checksum in _known() and folder.is_dir():
        return folder
    raise InputError(
        f"weights {checksum[:16]}...: not seen on this machine, or no longer where they were; extract features with "
        "hf:FOLDER once, where FOLDER holds them, and they are found again"
    )


def _register() -> Path:
    return weights_folder() / "models.json"


def _known() -> dict[str, str]:
    try:
        content = json.loads(_register().read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a note that is not there, or damaged, is made again
        return {}
    return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}


def _opened(folder: Path, model: str, commit: str | None) -> Snapshot:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder}: holds no config.json; a folder as `save_pretrained` writes it is needed") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / 'config.json'}: cannot be read ({error})") from error
    if not isinstance(config, dict):
        raise InputError(f"{folder / 'config.json'}: is not a JSON object")
    refuse_kernels(config, folder / "config.json")
    weights = next((found for pattern in _WEIGHTS if (found := sorted(folder.glob(pattern)))), [])
    if not weights:
        raise InputError(f"{folder}: holds no weights ({' or '.join(_WEIGHTS)})")
    return Snapshot(folder, model, commit, _license(folder), config, tuple(weights))


def _license(folder: Path) -> str:
    """Read the license from the head of the model's card."""
    import yaml

    card = folder / "README.md"
    head = card.read_text(encoding="utf-8", errors="replace").split("---") if card.is_file() else []
    if len(head) < 3 or head[0].strip():
        return "not stated"
    try:
        said = yaml.safe_load(head[1])
    except yaml.YAMLError:
        return "not stated"
    found = said.get("license_name") or said.get("license") if isinstance(said, dict) else None
    return str(found or "not stated")


def _fetched(model: str, revision: str | None) -> tuple[Path, str]:
    """Fetch a model from the hub, or take what its cache holds where the hub is out of reach: (folder, commit)."""
    transformers_for(f"hf:{model}")
    import huggingface_hub as hub
    from huggingface_hub import errors

    try:
        info = hub.HfApi().model_info(model, revision=revision)
        names = [one.rfilename for one in info.siblings or ()]
        folder = Path(hub.snapshot_download(model, revision=revision, allow_patterns=_needed(model, names)))
    except errors.GatedRepoError as error:
        raise InputError(
            f"{model}: is gated; accept its terms at https://huggingface.co/{model} and log in with `hf auth login`"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(f"{model}: has no revision '{revision}' on the Hugging Face Hub") from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(f"{model}: no such folder, and no such model on the Hugging Face Hub") from error
    except InputError:
        raise
    except Exception as error:  # whatever the HTTP client of the library raises: the hub is out of reach
        folder = _kept(model, revision, error)
    return folder, folder.name


def _kept(model: str, revision: str | None, unreachable: Exception) -> Path:
    """Find a model in the hub's cache on this disk."""
    import huggingface_hub as hub

    for weights in _WEIGHTS:  # as they were fetched: of one kind
        with suppress(OSError, ValueError):
            folder = Path(
                hub.snapshot_download(
                    model, revision=revision, local_files_only=True, allow_patterns=[*_SMALL, weights]
                )
            )
            if any(folder.glob(weights)):
                return folder
    first = (str(unreachable).splitlines() or [type(unreachable).__name__])[0]
    raise InputError(
        f"{model}: no such folder, and the Hugging Face Hub could not be asked ({first}); "
        f"fetch it elsewhere with `hf download {model} --local-dir FOLDER` and give hf:FOLDER"
    ) from unreachable


def _needed(model: str, names: list[str]) -> list[str]:
    """Name the files to fetch: weights of one kind, and all that is small."""
    kinds = ([name for name in names if fnmatch(name, pattern)] for pattern in _WEIGHTS)
    weights = next(filter(None, kinds), [])
    if not weights:
        raise InputError(f"{model}: holds no weights for `transformers` ({' or '.join(_WEIGHTS)})")
    return [*_SMALL, *weights]
