"""Files of a model, in a folder or in the cache of downloads from the Hugging Face Hub."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256 as hashed
from pathlib import Path
from tempfile import TemporaryDirectory

from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.consent import require_address_consent
from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.ground.json_values import JsonObject, parse_object
from aadml.feature_extraction.ground.transformers_library import refuse_kernels, transformers_for
from aadml.feature_extraction.weights.hub_names import PREFIX
from aadml.feature_extraction.weights.table import weights_folder

_CHECKSUM = re.compile("[0-9a-f]{64}")
_SMALL = ("*.json", "*.txt", "*.model", "README.md", "LICENSE*")
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")  # in the order of preference
_IRRELEVANT = ("_name_or_path", "transformers_version", "architectures", "torch_dtype", "dtype")
_DATA = {".json", ".txt", ".model", ".jinja"}
"""Endings of the small files of a model that are restored."""


@dataclass(frozen=True)
class Snapshot:
    """Model on the local disk.

    Attributes:
        folder: folder of the files.
        model: name of the model on the hub, or of the folder.
        revision: commit on the hub; None for a folder.
        license: license stated in the model card; "not stated" without one.
        config: content of `config.json`.
        weights: weight files.
    """

    folder: Path
    model: str
    revision: str | None
    license: str
    config: JsonObject
    weights: tuple[Path, ...]

    @property
    def model_type(self) -> str:
        """Architecture that `config.json` declares; "" without a declaration."""
        return str(self.config.get("model_type", ""))

    def settings(self, name: str) -> JsonObject:
        """Return the content of the JSON file `name`; {} for an absent file. Raise InputError for a damaged file."""
        path = self.folder / name
        return parse_object(path.read_bytes(), path) if path.is_file() else {}

    def checksums(self) -> dict[str, str]:
        """Compute the SHA-256 of the small files and the weight files of the model, by name."""
        small = {path for pattern in _SMALL for path in self.folder.glob(pattern) if path.is_file()}
        return {str(path.relative_to(self.folder)): sha256(path) for path in sorted({*small, *self.weights})}

    def small_files(self) -> dict[str, bytes]:
        """Read the files for preparing inputs, by name: configurations, vocabularies, settings of a tokenizer."""
        paths = {path for pattern in ("*.json", "*.txt", "*.model") for path in self.folder.glob(pattern)}
        return {path.name: path.read_bytes() for path in sorted(paths) if not path.name.endswith(".index.json")}

    def weights_checksum(self) -> str:
        """Compute the SHA-256 of the weight file; for several files, the SHA-256 of their checksums."""
        checksums = [sha256(path) for path in self.weights]
        return checksums[0] if len(checksums) == 1 else hashed("".join(checksums).encode()).hexdigest()

    def config_checksum(self) -> str:
        """Compute the SHA-256 of the settings in `config.json` that determine the network."""
        settings = {key: value for key, value in self.config.items() if key not in _IRRELEVANT}
        return hashed(json.dumps(settings, sort_keys=True).encode()).hexdigest()

    def provenance(self) -> dict[str, str | dict[str, str]]:
        """Return the origin of the model.

        The value of the key "source" contains the arguments of `find` for the same model.
        """
        commit = {} if self.revision is None else {"revision": self.revision}
        source = {"model": self.model if commit else self.weights_checksum(), **commit}
        return {"model": self.model, "license": self.license, "files": self.checksums(), **commit, "source": source}


def find(model: str, revision: str | None, *, weights: bool = True) -> Snapshot:
    """Find the files of a model, downloading files that are only on the hub.

    Args:
        model: folder, name on the hub ("laion/clap-htsat-unfused"), or checksum of weights that were used before on
            this machine.
        revision: branch, tag or commit on the hub; None for the newest commit.
        weights: whether weights are needed; otherwise only the small files are downloaded.

    Raises:
        InputError: a model or revision that does not exist, a file that is missing, damaged or not accessible, or a
            missing package `transformers`.
    """
    if not model:
        raise InputError("the model is missing; pass hf:MODEL, with a folder or a name on the Hugging Face Hub")
    folder = _recorded(model) if _CHECKSUM.fullmatch(model) else Path(model).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise InputError(f"{model} is a folder, which has no revisions; leave out the revision '{revision}'")
        return _opened(folder, folder.resolve().name, None)
    if not _is_of_hub(model):
        raise InputError(
            f"{model} is neither a folder nor a name on the Hugging Face Hub; pass a folder, or a name OWNER/NAME"
        )
    folder, commit = _fetched(model, revision, weights=weights)
    return _opened(folder, model, commit, weights=weights)


def require_download_consent(model: object, revision: object) -> None:
    """Raise InputError for a model that `find` would download from the hub without the consent of the user.

    Args:
        model: argument of `find`, from a file. Folders, checksums of weights and models in the cache need no consent.
        revision: argument of `find`, from the same file.
    """
    commit = revision if isinstance(revision, str) else None
    if isinstance(model, str) and _is_of_hub(model) and _cached(model, commit) is None:
        name = f"{PREFIX}{model}@{commit}" if commit else f"{PREFIX}{model}"
        require_address_consent(name, name, f"run `aadml weights get {name}` first")


def _is_of_hub(model: str) -> bool:
    """Return whether a model that is not a folder has the form of a name on the hub."""
    folder = Path(model).expanduser()
    return not folder.exists() and not folder.is_absolute() and model.count("/") == 1


@contextmanager
def restored(model: str, files: Mapping[str, bytes]) -> Iterator[Snapshot]:
    """Write the small files of a model, without its weights, to a temporary folder.

    Args:
        model: name of the model.
        files: content of the files by name, including `config.json`.

    Yields:
        Snapshot of the model in the temporary folder.

    Raises:
        InputError: the configuration names code on the hub.
    """
    with TemporaryDirectory() as folder:
        config = json.loads(files["config.json"])
        refuse_kernels(config, model)
        for name, content in files.items():
            if Path(name).suffix in _DATA:  # files of code are never written
                (Path(folder) / Path(name).name).write_bytes(content)
        yield Snapshot(Path(folder), model, None, "", config, ())


def remember(snapshot: Snapshot, checksum: str) -> None:
    """Record the folder of a model, so that `find` finds the model by the checksum of its weights."""
    folders, folder = _recorded_folders(), str(snapshot.folder.resolve())
    if folders.get(checksum) == folder:
        return
    with suppress(OSError, InputError):  # a read-only cache
        write_text(_register(), json.dumps({**folders, checksum: folder}, indent=1, sort_keys=True))


def _recorded(checksum: str) -> Path:
    folder = _recorded_folders().get(checksum)
    if folder is None or not Path(folder).is_dir():
        raise InputError(
            f"weights {checksum[:16]}... were never used on this machine, or have been moved; extract features once "
            "with hf:FOLDER, where FOLDER contains these weights"
        )
    return Path(folder)


def _register() -> Path:
    return weights_folder() / "models.json"


def _recorded_folders() -> dict[str, str]:
    try:
        content = json.loads(_register().read_text(encoding="utf-8"))
    except (OSError, ValueError):  # `remember` replaces an absent or damaged record
        return {}
    return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}


def _opened(folder: Path, model: str, commit: str | None, *, weights: bool = True) -> Snapshot:
    try:
        config = parse_object((folder / "config.json").read_bytes(), folder / "config.json")
    except OSError as error:
        raise InputError(
            f"{folder} contains no readable config.json; pass a model that was saved by `save_pretrained`"
        ) from error
    refuse_kernels(config, folder / "config.json")
    if (adapters := folder / "adapter_config.json").is_file():  # `transformers` would add them to the weights
        raise InputError(
            f"{adapters} describes adapters, which are not loaded; save the network with `merge_and_unload()` and "
            "`save_pretrained`, or remove this file to use the weights without the adapters"
        )
    files = next(filter(None, (sorted(folder.glob(pattern)) for pattern in _WEIGHTS)), [])
    if weights and not files:
        raise InputError(f"{folder} contains no weights ({' or '.join(_WEIGHTS)}); copy the weights into this folder")
    return Snapshot(folder, model, commit, _license(folder), config, tuple(files))


def _license(folder: Path) -> str:
    """Read the license from the metadata of the model card."""
    transformers_for("a pretrained network")
    from huggingface_hub.repocard import metadata_load
    from yaml import YAMLError

    card: JsonObject = {}
    with suppress(OSError, ValueError, YAMLError):
        card = metadata_load(folder / "README.md") or {}
    return str(card.get("license_name") or card.get("license") or "not stated")


def _cached(model: str, revision: str | None) -> Path | None:
    """Return the folder of a model in the hub's cache; None for a model without weights in the cache."""
    transformers_for(f"hf:{model}")
    import huggingface_hub as hub

    for pattern in _WEIGHTS:  # the cache contains only one kind of weights
        with suppress(OSError, ValueError):
            patterns = [*_SMALL, pattern]
            folder = Path(
                hub.snapshot_download(model, revision=revision, local_files_only=True, allow_patterns=patterns)
            )
            if any(folder.glob(pattern)):
                return folder
    return None


def _fetched(model: str, revision: str | None, *, weights: bool) -> tuple[Path, str]:
    """Return folder and commit of a model from the hub, or from the hub's cache if the download fails."""
    transformers_for(f"hf:{model}")
    import huggingface_hub as hub
    from huggingface_hub import errors

    try:
        info = hub.HfApi().model_info(model, revision=revision)
        kinds = ([file.rfilename for file in info.siblings or () if fnmatch(file.rfilename, p)] for p in _WEIGHTS)
        files = next(filter(None, kinds), [])
        if not files:
            raise InputError(
                f"{model} contains no weights for `transformers` ({' or '.join(_WEIGHTS)}); choose another model"
            )
        wanted = [*_SMALL, *(files if weights else ())]
        folder = Path(hub.snapshot_download(model, revision=revision, allow_patterns=wanted))
    except errors.GatedRepoError as error:
        raise InputError(
            f"{model}: access is restricted; accept its terms at https://huggingface.co/{model} and log in with "
            "`hf auth login`"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(
            f"{model} has no revision '{revision}' on the Hugging Face Hub; choose another revision"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(
            f"{model} is neither a folder nor a public model on the Hugging Face Hub; check the name, or log in with "
            "`hf auth login`"
        ) from error
    except InputError:
        raise
    except Exception as error:  # any exception of the library's HTTP client: the hub is unreachable
        if (cached := _cached(model, revision)) is not None:
            return cached, cached.name
        raise InputError(
            f"{model} is neither a folder nor in the cache, and its download from the Hugging Face Hub failed "
            f"({cause(error)}); download the model elsewhere with `hf download {model} --local-dir FOLDER` and pass "
            "hf:FOLDER"
        ) from error
    return folder, folder.name
