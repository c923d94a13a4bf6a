"""Each check of the audit on a planted case."""

import sys
from dataclasses import dataclass, replace

import pytest
import torch

from aadml.data import to_splits
from aadml.data.synthetic import synthetic
from aadml.protocols.audit import Verdict, audit
from aadml.protocols.audit_checks import duplicates, id_blindness, label_blindness, selection
from aadml.protocols.pipelines import CommandPipeline, FunctionPipeline
from tests.protocols import zoo


@pytest.mark.slow
def test_labels_that_ids_spell_are_caught(subject, tmp_path):
    script = tmp_path / "embed.py"
    script.write_text(
        "import sys, h5py, numpy as np\n"
        "with h5py.File(sys.argv[1]) as given, h5py.File(sys.argv[2], 'w') as made:\n"
        "    spelled = np.array([len(set(name)) for name in given['id'].asstr()[...]])\n"
        "    for modality in ('audio', 'visual'):\n"
        "        if modality in given:\n"
        "            made[modality] = given[modality][:, :3] + spelled[:, None]\n"
    )
    small = to_splits(synthetic(classes=2, train=8, valid=4, test=8, dimensions=(4, 5)))
    ids = tuple(f"{'abc' if y else 'a'}{'z' * i}" for i, y in enumerate(small.test.labels.tolist()))
    small = replace(small, test=replace(small.test, ids=ids))
    checks = [id_blindness, label_blindness]
    found = audit(CommandPipeline(f"{sys.executable} {script} {{input}} {{output}}"), small, checks)
    assert [one.verdict for one in found] == [Verdict.FAIL, Verdict.PASS]


def test_duplicates_across_splits_are_found(subject):
    test = subject.splits.test
    doubled = subject.splits.__class__(test.select(torch.arange(10)), subject.splits.valid, test)
    (found,) = audit(FunctionPipeline(zoo.identity), doubled, [duplicates])
    assert found.failed
    assert "10 ids" in found.evidence


def test_clips_that_are_copied_with_noise_are_found(subject):
    test = subject.splits.test
    noisy = {m: test.matrix(m) + 1e-4 * test.matrix(m).std(0) for m in test.modalities}
    copied = replace(test, features=noisy, ids=tuple(f"copy-{name}" for name in test.ids))
    (found,) = audit(FunctionPipeline(zoo.identity), replace(subject.splits, valid=copied), [duplicates])
    assert found.failed
    assert f"{len(test)} audio vectors also (or nearly) in valid" in found.evidence
    (clean,) = audit(FunctionPipeline(zoo.identity), subject.splits, [duplicates])
    assert not clean.failed


@dataclass(frozen=True)
class SeesEveryLabel:
    """A pipeline that fits, or embeds by, all labels of clips that may have several, and never looks at the first."""

    fits: bool
    preparation: str = "it was fitted again"

    def embedder(self, splits, split):
        fitted = splits[split].all_labels.float().T @ splits[split].matrix("audio")[:, :1]

        def embed(clips):
            seen = fitted[0] if self.fits else clips.all_labels.float()
            return clips.embedded({m: clips.matrix(m)[:, :4] + seen for m in clips.modalities})

        return embed

    def reported_map(self, splits, split):
        return None


@pytest.mark.parametrize(("fits", "check"), [(False, "label blindness"), (True, "selection")])
def test_garbage_takes_the_place_of_all_labels_of_clips_that_have_several(subject, fits, check):
    several = {
        name: replace(clips, all_labels=torch.nn.functional.one_hot(clips.labels, 4).bool())
        for name, clips in ((name, subject.splits[name]) for name in ("train", "valid", "test"))
    }
    findings = audit(SeesEveryLabel(fits), replace(subject.splits, **several), [label_blindness, selection])
    assert [finding.check for finding in findings if finding.failed] == [check]
