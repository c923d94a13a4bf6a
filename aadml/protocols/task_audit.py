"""Audit of the data of a retrieval task, without a model."""

from aadml.data.inspection.retrieval_task import SplitStatistics, TaskExamination, examine_task
from aadml.protocols.audit import AuditReport, Finding, Verdict


class TaskReport(AuditReport):
    """Findings on the data of a task, with one verdict, because no encoder is run."""

    @property
    def inference(self) -> str:
        """Verdict on the data: passed or failed."""
        return "failed" if self.failed else "passed"

    @property
    def training(self) -> str:
        """Verdict on training: always "unknown", because the data of a task contain no training."""
        return "unknown"

    @property
    def summary(self) -> str:
        """Verdict, followed by the names of failed checks."""
        failed = [finding.check for finding in self if finding.failed]
        return f"data {self.inference}" + (f": {', '.join(failed)}" if failed else "")


def audit_task(task: str) -> TaskReport:
    """Return findings on the duplicates, judgments, queries, ties and chance scores of a retrieval task.

    Args:
        task: a folder, a table of clips, or the name of a task of mteb; see `examine_task`.

    Raises:
        InputError: the task cannot be loaded, or its data are incomplete, invalid or without judgments.
        MissingExtraError: pyarrow or, for a name, mteb is not installed.
    """
    examination = examine_task(task)
    return TaskReport([*_overlaps(examination), *(f for name, s in examination.splits.items() for f in _of(name, s))])


def _overlaps(examination: TaskExamination) -> list[Finding]:
    findings = []
    for kind, repeats in examination.duplicates.items():
        for check, counts in ((f"duplicate {kind}", repeats.within), (f"{kind} in two splits", repeats.across)):
            words = ", ".join(f"{count} in {place}" for place, count in counts.items()) or "there is one split"
            shown = f" ({', '.join(repeats.examples)})" if "two" in check and repeats.examples else ""
            findings.append(Finding(check, _verdict(sum(counts.values())), f"identical contents: {words}{shown}"))
    return findings


def _of(name: str, split: SplitStatistics) -> list[Finding]:
    counts = f"{split.queries} queries, {split.items} items, {split.judgments} judgments"
    return [
        Finding(
            f"judgments of {name}",
            _verdict(split.absent + split.unanswerable),
            f"{counts}; {split.absent} judgments of absent items, {split.unanswerable} queries without a relevant item",
        ),
        Finding(
            f"queries of {name}",
            _verdict(split.own_items),
            f"the content of {split.own_items} of {split.queries} queries is also an item",
        ),
        Finding(
            f"ties of {name}",
            _verdict(split.ambiguous),
            f"{split.ambiguous} queries share their content, or that of a relevant item, with another answer; "
            f"precision@1 is at most {split.ceiling:.4f}",
        ),
        Finding(
            f"chance of {name}",
            Verdict.PASS,
            f"MAP {split.chance:.4f} and precision@1 {split.chance_first:.4f} for a random order",
        ),
    ]


def _verdict(problems: int) -> Verdict:
    return Verdict.FAIL if problems else Verdict.PASS
