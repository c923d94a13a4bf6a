"""The audit of the data of a retrieval task, on planted statistics."""

from aadml.data.inspection.retrieval_task import Duplicates, SplitStatistics, TaskExamination
from aadml.protocols import task_audit
from aadml.protocols.audit import Verdict

CLEAN = SplitStatistics(9, 8, 10, 0, 0, 0, 0, 1.0, 0.25, 0.125)


def audited(monkeypatch, duplicates, **splits):
    monkeypatch.setattr(task_audit, "examine_task", lambda task: TaskExamination(task, splits, duplicates))
    report = task_audit.audit_task("folder")
    return report, [(finding.check, finding.verdict.value, finding.evidence) for finding in report]


def test_clean_data_pass_and_say_nothing_on_training(monkeypatch):
    report, findings = audited(monkeypatch, {"queries": Duplicates({"test": 0}, {}, ())}, test=CLEAN)
    assert findings == [
        ("duplicate queries", "pass", "identical contents: 0 in test"),
        ("queries in two splits", "pass", "identical contents: there is one split"),
        ("judgments of test", "pass",
         "9 queries, 8 items, 10 judgments; 0 judgments of absent items, 0 queries without a relevant item"),
        ("queries of test", "pass", "the content of 0 of 9 queries is also an item"),
        ("ties of test", "pass", "0 queries share their content, or that of a relevant item, with another answer; "
         "precision@1 is at most 1.0000"),
        ("chance of test", "pass", "MAP 0.2500 and precision@1 0.1250 for a random order"),
    ]  # fmt: skip
    assert (report.summary, report.inference, report.training) == ("data passed", "passed", "unknown")


def test_every_kind_of_problem_fails_a_check_of_its_own(monkeypatch):
    items = Duplicates({"train": 2, "test": 0}, {"train and test": 1}, ("a = b", "c = d"))
    fields = {"absent": "judgments", "unanswerable": "judgments", "own_items": "queries", "ambiguous": "ties"}
    splits = {name: SplitStatistics(**{**vars(CLEAN), name: 1}) for name in fields}
    report, findings = audited(monkeypatch, {"items": items}, **splits)
    assert findings[:2] == [
        ("duplicate items", "fail", "identical contents: 2 in train, 0 in test"),
        ("items in two splits", "fail", "identical contents: 1 in train and test (a = b, c = d)"),
    ]
    failed = ["duplicate items", "items in two splits", *(f"{check} of {name}" for name, check in fields.items())]
    assert [check for check, verdict, _ in findings if verdict == Verdict.FAIL] == failed
    assert (report.inference, report.summary) == ("failed", f"data failed: {', '.join(failed)}")
