"""aadml: audio-visual and audio-text cross-modal metric learning with Anchor-Aware proxies, under honest protocols.

Public API. Most commands of the command line call one function of this package, with the same defaults. Names are
imported on first use, so that `import aadml` is fast.

    >>> import aadml
    >>> splits = aadml.read("synthetic:ave")
    >>> model = aadml.fit(splits, method="cca")
    >>> model.embed(audio=splits.test["audio"].numpy()).shape
    (189, 10)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aadml import losses
    from aadml.comparison.clips import Clips, Splits
    from aadml.data.conversion import convert
    from aadml.data.inspection.inspection import inspect
    from aadml.data.manifests.making import manifest
    from aadml.data.sample_clips import sample_data
    from aadml.feature_extraction.ground.errors import (
        AadmlError,
        DamagedFileError,
        InputError,
        InUseError,
        MissingExtraError,
        UntrustedCodeError,
    )
    from aadml.feature_extraction.jobs.job import extract
    from aadml.feature_extraction.jobs.merge import merge
    from aadml.feature_extraction.jobs.status import status
    from aadml.feature_extraction.jobs.weights import weights
    from aadml.model.model import Model
    from aadml.papers.reproduction import reproduce
    from aadml.reports.run_page import write_report as report
    from aadml.runs.audit import audit
    from aadml.runs.data import read
    from aadml.runs.doctor import doctor
    from aadml.runs.embed import embed_file as embed
    from aadml.runs.evaluate import evaluate
    from aadml.runs.export import export
    from aadml.runs.fit import fit
    from aadml.runs.fit import resume_run as resume
    from aadml.runs.loading import load
    from aadml.search.app import serve
    from aadml.search.build_index import build as index
    from aadml.search.index import Index
    from aadml.search.verify import verify
    from aadml.studies.ablation import ablate
    from aadml.studies.comparison import compare

__all__ = [
    "AadmlError",
    "Clips",
    "DamagedFileError",
    "InUseError",
    "Index",
    "InputError",
    "MissingExtraError",
    "Model",
    "Splits",
    "UntrustedCodeError",
    "__version__",
    "ablate",
    "audit",
    "compare",
    "convert",
    "doctor",
    "embed",
    "evaluate",
    "export",
    "extract",
    "fit",
    "index",
    "inspect",
    "load",
    "losses",
    "manifest",
    "merge",
    "read",
    "report",
    "reproduce",
    "resume",
    "sample_data",
    "serve",
    "status",
    "verify",
    "weights",
]

_HOMES = {
    "AadmlError": "aadml.feature_extraction.ground.errors:AadmlError",
    "Clips": "aadml.comparison.clips:Clips",
    "DamagedFileError": "aadml.feature_extraction.ground.errors:DamagedFileError",
    "InUseError": "aadml.feature_extraction.ground.errors:InUseError",
    "Index": "aadml.search.index:Index",
    "InputError": "aadml.feature_extraction.ground.errors:InputError",
    "MissingExtraError": "aadml.feature_extraction.ground.errors:MissingExtraError",
    "Model": "aadml.model.model:Model",
    "Splits": "aadml.comparison.clips:Splits",
    "UntrustedCodeError": "aadml.feature_extraction.ground.errors:UntrustedCodeError",
    "ablate": "aadml.studies.ablation:ablate",
    "audit": "aadml.runs.audit:audit",
    "compare": "aadml.studies.comparison:compare",
    "convert": "aadml.data.conversion:convert",
    "doctor": "aadml.runs.doctor:doctor",
    "embed": "aadml.runs.embed:embed_file",
    "evaluate": "aadml.runs.evaluate:evaluate",
    "export": "aadml.runs.export:export",
    "extract": "aadml.feature_extraction.jobs.job:extract",
    "fit": "aadml.runs.fit:fit",
    "index": "aadml.search.build_index:build",
    "inspect": "aadml.data.inspection.inspection:inspect",
    "load": "aadml.runs.loading:load",
    "losses": "aadml.losses:",
    "manifest": "aadml.data.manifests.making:manifest",
    "merge": "aadml.feature_extraction.jobs.merge:merge",
    "read": "aadml.runs.data:read",
    "report": "aadml.reports.run_page:write_report",
    "reproduce": "aadml.papers.reproduction:reproduce",
    "resume": "aadml.runs.fit:resume_run",
    "sample_data": "aadml.data.sample_clips:sample_data",
    "serve": "aadml.search.app:serve",
    "status": "aadml.feature_extraction.jobs.status:status",
    "verify": "aadml.search.verify:verify",
    "weights": "aadml.feature_extraction.jobs.weights:weights",
}

_EXTRAS = {"starlette", "uvicorn"}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module 'aadml' has no attribute '{name}'; choose from {', '.join(__all__)}")
    module, _, attribute = _HOMES[name].partition(":")
    try:
        home = importlib.import_module(module)
    except ModuleNotFoundError as error:
        from aadml.feature_extraction.ground.errors import MissingExtraError

        if (error.name or "").partition(".")[0] not in _EXTRAS:
            raise
        raise MissingExtraError.of(f"aadml.{name}", str(error.name), f"aadml[{name}]") from error
    if not attribute:
        return home
    entry = getattr(home, attribute)
    if isinstance(entry, type):
        return entry
    from aadml.feature_extraction.ground.argument_types import checked

    return checked(entry, __name__, name)


def __dir__() -> list[str]:
    return __all__


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slower to import than the rest of aadml

    try:
        return version("aadml")
    except PackageNotFoundError:
        return "not installed"
