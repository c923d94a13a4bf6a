"""Loading of runs, with their config and data, and of model folders."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from aadml.comparison.clips import Splits
from aadml.configuration.config import Config
from aadml.configuration.files import parsed
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.consent import named_in
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import parse_as, parse_object
from aadml.model.files import load_model
from aadml.model.model import Model
from aadml.model.packing import FACTS, WEIGHTS
from aadml.model.sharing import downloaded
from aadml.protocols.audit import Finding
from aadml.retrieval.record import EvaluationRecord
from aadml.runs.data import load_splits
from aadml.runs.environment import check_same_data, data_hash, read_environment
from aadml.runs.manifest import CONFIG, EVALUATION, RunManifest, is_run, newest_run, read_manifest
from aadml.runs.session import read_curves

AUDIT = "audit.json"
"""File of the last audit of a run under its own protocol."""

SAME_SCORE = 1e-3
"""Largest difference of MAP between computations from equal weights and data, for example on two devices."""


@dataclass(frozen=True)
class AuditRecord:
    """Content of `audit.json`.

    Attributes:
        protocol: protocol of the audit.
        split: audited split.
        verdict: verdict in one sentence.
        findings: finding of each check.
        checksum: SHA-256 of the audited embeddings; empty in records of earlier versions.
        map_mean: MAP of the audited model; None in records of earlier versions.
        weights: SHA-256 of the audited weights; empty in records of earlier versions.
        data: SHA-256 of the data of the run; empty in records of earlier versions.
    """

    protocol: str
    split: str
    verdict: str
    findings: tuple[Finding, ...]
    checksum: str = ""
    map_mean: float | None = None
    weights: str = ""
    data: str = ""

    def binding(self, run: RunManifest, protocol: str, split: str, map_mean: float) -> str:
        """Return whether a score is of the audited embeddings, as a phrase; "" for records of old versions.

        Weights, data, protocol and split are compared, because they determine the embeddings up to rounding. A checksum
        of embeddings would differ with the machine and the number of threads. The MAP is also compared, to detect
        changes of the model's options or of the code.
        """
        if self.map_mean is None or not self.weights:
            return ""
        is_same = (protocol, split, *checksums(run)) == (self.protocol, self.split, self.weights, self.data)
        is_same = is_same and abs(map_mean - self.map_mean) <= SAME_SCORE
        return f"audited: these embeddings (SHA-256 {self.checksum[:12]})" if is_same else "audited: others"

    def on(self, run: RunManifest, record: EvaluationRecord) -> str:
        """Return the verdict, with the phrase of `binding` for `record` unless that phrase is empty."""
        binding = self.binding(run, record.protocol, record.split, record.map_mean)
        return f"{self.verdict}; {binding}" if binding else self.verdict


def checksums(run: RunManifest) -> tuple[str, str]:
    """Return the SHA-256 of the weights and of the data of a finished run.

    Raises:
        InputError: the file with the environment of the run is missing or damaged.
    """
    return run.files[WEIGHTS].sha256, read_environment(run).data.sha256


@dataclass(frozen=True)
class Run:
    """Trained run with its training data.

    Attributes:
        manifest: manifest of the run.
        config: config of the run.
        splits: training data, unscaled.
        model: trained model.
    """

    manifest: RunManifest
    config: Config
    splits: Splits
    model: Model

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        return self.manifest.folder


@with_consent("path")
def load(path: str | Path, *, revision: str | None = None, device: str = "auto", trust_code: bool = False) -> Model:
    """Load a model from a run or a model folder. The training data and the paths in the config are not needed.

    A loss, selection, proxy or metric from outside aadml is not needed for embedding and not built. A method or an
    extractor from outside aadml is built only with consent.

    Args:
        path: a run folder of `aadml train`, a folder of runs, a folder of `Model.save`, or "hf:ORGANIZATION/NAME"
            for a model on the Hugging Face Hub. Among the runs of a folder, the newest finished run is loaded. No
            code from the hub is run.
        revision: branch, tag or commit of a model on the hub. With a revision, the name of the model needs no
            "hf:".
        device: "auto", "cpu" or "cuda".
        trust_code: import the code that the model names as `module:name`.

    Raises:
        UntrustedCodeError: the model names a method from outside aadml, and `trust_code` is False.
        InputError: the folder is damaged, or is neither a trained run nor a model. Other causes: the model or the
            device is not available.

    Example:
        >>> folder = aadml.fit("synthetic:ave", method="cca").save("my model")
        >>> aadml.load(folder)
        <Model cca: audio 128-d, visual 1024-d, 15 classes, cosine, test MAP 0.110>
    """
    folder = newest_run(Path(path)) if revision is None else downloaded(str(path), revision)
    if not is_run(folder):
        return load_model(folder, chosen_device(device, "load"))
    return load_trained(read_manifest(folder), device)


def load_trained(manifest: RunManifest, device: str = "auto") -> Model:
    """Load the model of a run; see `load`.

    Raises:
        InputError: the training of the run was not finished, or a file is damaged.
    """
    folder = manifest.folder
    if FACTS not in manifest.files:
        raise InputError(f"{folder}: training was not finished; {manifest.continuation}")
    manifest.read(FACTS)  # the manifest must agree with the checksums of the model
    model = load_model(folder, chosen_device(device, "load"))
    model = replace(model, records=partial(read_curves, folder))
    if not manifest.is_finished:
        return model
    audit, record = read_audit(manifest), read_evaluation(manifest)
    return replace(model, record=record, audit=audit.on(manifest, record) if audit else "")


def load_run(folder: Path, *, device: str | None = None, judged: bool = True) -> Run:
    """Load a trained run with its config and training data.

    Args:
        folder: folder of the run.
        device: device to use instead of the config's.
        judged: whether the data have the relevance rule of the run, instead of the rule of the data.

    Raises:
        InputError: the folder is damaged or not a trained run, or its data or judgments are changed or missing.
    """
    folder = newest_run(folder)
    if not is_run(folder) and (folder / FACTS).is_file():
        raise InputError(f"{folder} is a model without its run; pass --data F.h5, or pass the run folder")
    manifest = read_manifest(folder)
    config = read_config(manifest)
    model = load_trained(manifest, device or config.common.device)
    try:
        splits = load_splits(config if judged else replace(config, common=replace(config.common, relevance=None)))
    except InputError as error:
        raise type(error)(f"{error} (restore the data of {folder}, or pass --data F.h5)") from error
    remedy = "restore them, or pass --data F.h5"
    check_same_data(manifest, config, splits, data_hash(splits), remedy, judged=judged)
    return Run(manifest, config, splits, model)


def read_config(run: Path | RunManifest) -> Config:
    """Read the config of a run.

    Raises:
        InputError: the folder is not a run, or its config is missing, damaged or changed.
    """
    manifest = read_manifest(run)
    place = manifest.folder / CONFIG
    with named_in(place):
        return parsed(manifest.read(CONFIG).decode(), place).resolve(stored=True)


def read_evaluation(run: Path | RunManifest, *, name: str = EVALUATION) -> EvaluationRecord:
    """Read the evaluation of a finished run, or a later evaluation by its file name.

    Raises:
        InputError: the run is not finished, or the file is missing or damaged.
    """
    manifest = read_manifest(run)
    place = manifest.folder / name
    return EvaluationRecord.from_json(parse_object(manifest.read(name), place), place)


def failed_checks(folder: Path) -> list[Finding]:
    """Return the failed checks of the last audit of a run; an empty list for a folder without an audit.

    Raises:
        InputError: the manifest or the audit is damaged.
    """
    audit = read_audit(read_manifest(folder)) if is_run(folder) else None
    return [finding for finding in audit.findings if finding.failed] if audit else []


def read_audit(manifest: RunManifest) -> AuditRecord | None:
    """Read the last audit of a run; None if the run was not audited.

    Raises:
        InputError: the file of the audit is missing or damaged.
    """
    if AUDIT not in manifest.files:
        return None
    return parse_as(AuditRecord, manifest.read(AUDIT), manifest.folder / AUDIT)
