"""aadml: audio-visual and audio-text cross-modal metric learning with Anchor-Aware proxies, under honest protocols.

The public face. Every command of the command line is a call of one function here or in the room it names, with the same
defaults. Names are imported on first use, so that `import aadml` answers at once.

    >>> import aadml
    >>> splits = aadml.read("synthetic:ave")
    >>> model = aadml.fit(splits, method="cca")
    >>> model.embed(audio=splits.test["audio"].numpy()).shape
    (189, 10)
"""

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aadml import losses
    from aadml.comparison.clips import Clips, Splits
    from aadml.data.sample_clips import sample_data
    from aadml.feature_extraction.ground.consent import UntrustedCodeError
    from aadml.feature_extraction.ground.errors import InputError
    from aadml.feature_extraction.jobs.job import extract
    from aadml.model.model import Model
    from aadml.reports.run_page import write_report as report
    from aadml.runs.audit import audit
    from aadml.runs.data import read
    from aadml.runs.embed import embed_file as embed
    from aadml.runs.evaluate import evaluate
    from aadml.runs.fit import fit
    from aadml.runs.fit import resume_run as resume
    from aadml.runs.loading import load
    from aadml.runs.verify import verify
    from aadml.studies.ablation import ablate
    from aadml.studies.comparison import compare

__all__ = [
    "Clips",
    "InputError",
    "Model",
    "Splits",
    "UntrustedCodeError",
    "__version__",
    "ablate",
    "audit",
    "compare",
    "embed",
    "evaluate",
    "extract",
    "fit",
    "load",
    "losses",
    "read",
    "report",
    "resume",
    "sample_data",
    "verify",
]

_HOMES = {
    "Clips": "aadml.comparison.clips:Clips",
    "InputError": "aadml.feature_extraction.ground.errors:InputError",
    "Model": "aadml.model.model:Model",
    "Splits": "aadml.comparison.clips:Splits",
    "UntrustedCodeError": "aadml.feature_extraction.ground.consent:UntrustedCodeError",
    "ablate": "aadml.studies.ablation:ablate",
    "compare": "aadml.studies.comparison:compare",
    "audit": "aadml.runs.audit:audit",
    "embed": "aadml.runs.embed:embed_file",
    "evaluate": "aadml.runs.evaluate:evaluate",
    "extract": "aadml.feature_extraction.jobs.job:extract",
    "fit": "aadml.runs.fit:fit",
    "load": "aadml.runs.loading:load",
    "losses": "aadml.losses:",
    "read": "aadml.runs.data:read",
    "report": "aadml.reports.run_page:write_report",
    "resume": "aadml.runs.fit:resume_run",
    "sample_data": "aadml.data.sample_clips:sample_data",
    "verify": "aadml.runs.verify:verify",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module 'aadml' has no attribute '{name}'; there are {', '.join(__all__)}")
    module, _, attribute = _HOMES[name].partition(":")
    found = importlib.import_module(module)
    if not attribute:
        return found
    entry = getattr(found, attribute)
    if isinstance(entry, type):
        return entry
    from aadml.feature_extraction.ground.argument_types import checked

    return checked(entry, __name__, name)


def __dir__() -> list[str]:
    return __all__


def _version() -> str:
    try:
        return version("aadml")
    except PackageNotFoundError:
        return "not installed"
