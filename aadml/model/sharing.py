"""Models on the Hugging Face Hub: files are copied, checked against their checksums, and never run."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.ground.import_paths import optional
from aadml.feature_extraction.weights.hub_names import PREFIX
from aadml.model.facts import Facts
from aadml.model.packing import CARD, FACTS, WEIGHTS
from aadml.retrieval.record import EvaluationRecord

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from aadml.model.model import Model

_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_USER = "a model of the Hugging Face Hub"


def push(model: "Model", name: str, *, license_id: str | None, private: bool | None) -> str:
    """Upload a model with a card and metadata, and return the address of the commit.

    See `Model.push_to_hub`.

    Raises:
        InputError: an invalid name, or a hub that cannot be reached or refuses the name or access.
        MissingExtraError: huggingface_hub is not installed.
    """
    hub = optional("huggingface_hub", _USER, "aadml[hub]")
    name = name.removeprefix(PREFIX)
    _check(name)
    with TemporaryDirectory() as temporary:
        folder = model.save(Path(temporary) / "model")
        card = model.card().replace('aadml.load("FOLDER")', f'aadml.load("{PREFIX}{name}")')
        (folder / CARD).write_text(f"---\n{_metadata(model.facts, model.record, license_id)}\n---\n\n{card}", "utf-8")
        try:
            api = hub.HfApi(library_name="aadml")
            api.create_repo(name, private=private, exist_ok=True)
            return str(api.upload_folder(repo_id=name, folder_path=folder, commit_message="Model of aadml").commit_url)
        except Exception as error:  # the library and its HTTP client have no common class of errors
            raise InputError(
                f"{name} cannot be written on the Hugging Face Hub ({cause(error)}); check connection and name, and "
                "log in with `hf auth login`"
            ) from error


def downloaded(name: str, revision: str | None = None) -> Path:
    """Return the folder of a model in the cache of the hub, after an update of the folder from the hub.

    Without a connection, the folder is not updated. Only the two files of the model and its card are downloaded.

    Args:
        name: "org/name" or "org/name@revision", with or without "hf:".
        revision: branch, tag or commit; None for the revision in `name`. If `name` has no revision, the newest
            commit of the main branch is used.

    Raises:
        InputError: an invalid name, a repository in neither hub nor cache, or a repository without a model.
        MissingExtraError: huggingface_hub is not installed.
    """
    hub = optional("huggingface_hub", _USER, "aadml[hub]")
    name, _, named = name.removeprefix(PREFIX).partition("@")
    revision = revision or named or None
    _check(name)
    try:
        folder = Path(hub.snapshot_download(name, revision=revision, allow_patterns=[FACTS, WEIGHTS, CARD]))
    except Exception as error:
        raise InputError(
            f"{PREFIX}{name} cannot be read from the Hugging Face Hub or its cache ({cause(error)}); check "
            "connection, name and revision, and log in with `hf auth login` if access is restricted"
        ) from error
    if not (folder / FACTS).is_file():
        raise InputError(
            f"{PREFIX}{name} has no model of aadml, because the file {FACTS} is missing; pass the name of a repository "
            "that `push_to_hub` wrote"
        )
    return folder


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(f"'{name}' is not the name of a model on the Hugging Face Hub; pass ORGANIZATION/NAME")


def _metadata(facts: Facts, record: EvaluationRecord | None, license_id: str | None) -> str:
    """Return the metadata of a card as YAML, with MAP, protocol, chance and interval of every direction."""
    from huggingface_hub import ModelCardData

    results = _results(facts, record) if record else None
    card = ModelCardData(
        library_name="aadml",
        license=license_id,
        tags=["cross-modal-retrieval", "metric-learning", facts.method.name, *facts.modalities],
        model_name=facts.label if results else None,
        eval_results=results,
    )
    return str(card.to_yaml())


def _results(facts: Facts, record: EvaluationRecord) -> "list[EvalResult]":
    """Return the MAP of every direction as `EvalResult` objects for the hub.

    A protocol other than "inductive" is part of the name and the type of each result's metric.
    """
    from huggingface_hub import EvalResult

    leaks = "" if record.protocol == "inductive" else record.protocol
    return [
        EvalResult(
            task_type="cross-modal-retrieval",
            dataset_type=facts.data.name or "in memory",
            dataset_name=facts.data.name or "in memory",
            dataset_split=record.split,
            metric_type=re.sub(r"\W+", "-", f"map {leaks}".strip()),
            metric_name=f"MAP ({leaks}) {direction}" if leaks else f"MAP {direction}",
            metric_value=round(scores.map, 4),
            metric_args={
                "protocol": record.protocol,
                "chance": round(scores.chance, 4),
                "interval_95": [round(bound, 4) for bound in scores.map_interval],
                "gallery": scores.gallery,
                "relevance": record.relevance,
            },
        )
        for direction, scores in record.directions.items()
    ]
