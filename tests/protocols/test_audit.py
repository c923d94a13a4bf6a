"""The audit passes what is honest and catches every leak by name."""

import sys
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from aadml.data import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.inputs import Inputs, fit_scaling
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.training.settings import Training
from aadml.model.facts import Facts, MethodFacts
from aadml.model.model import Model
from aadml.protocols import PROTOCOLS
from aadml.protocols.audit import Verdict, audit
from aadml.protocols.audit_checks import CHECKS, duplicates, id_blindness, label_blindness, selection
from aadml.protocols.evaluation import evaluate_under, protocols_of
from aadml.protocols.pipelines import CommandPipeline, FunctionPipeline, ProtocolPipeline
from aadml.protocols.protocol import Subject
from tests.protocols import zoo


def trained(splits):
    context = Context({m: splits.train.dimension(m) for m in splits.train.modalities}, len(splits.train.class_names))
    settings = Training(epochs=12, batch=20, learning_rate=5e-3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = METHODS["aadml"](context, settings, network=NetworkOptions(hidden=(24,)), proxy="anchor-aware")
    facts = Facts(
        label="aa-triplet", method=MethodFacts("aadml", {}), training=settings, inputs=Inputs(),
        dimensions=context.dimensions, class_names=splits.train.class_names, clips=len(splits.train), seed=0,
    )  # fmt: skip
    encoder = Model(method, fit_scaling(splits.train), facts)
    method.fit(encoder.scaling.clips(splits.train), encoder.scaling.clips(splits.valid))
    return encoder


@pytest.fixture(scope="module")
def subject():
    content = synthetic(classes=4, train=80, valid=24, test=44, dimensions=(7, 9), difficulty=0.5)
    splits = to_splits(content)
    return Subject(trained(splits), splits, trained)


def failures(subject, name):
    return {f.check for f in audit(ProtocolPipeline(subject, name), subject.splits, CHECKS) if f.failed}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inductive", "bank", "bank-expansion"])
def test_the_honest_protocols_pass_every_check(subject, name):
    assert failures(subject, name) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("legacy:label-graph", "label blindness"),
        ("legacy:batch-attention", "batch invariance"),
        ("legacy:partner", "partner blindness"),
        ("legacy:test-selection", "selection"),
        ("legacy:running-map", "metric"),
        ("legacy:test-scaling", "other items"),
        ("legacy:drop-last", "nothing dropped"),
    ],
)
def test_every_leak_is_caught_by_the_check_that_is_meant_for_it(subject, name, check):
    assert check in failures(subject, name)


def test_every_legacy_protocol_is_in_the_table_of_this_test():
    legacy = {name for name in PROTOCOLS if name.startswith("legacy:")}
    assert len(legacy) == 7


def test_joined_leaks_are_caught_too(subject):
    assert failures(subject, "legacy:partner+legacy:running-map") >= {"partner blindness", "metric"}


def test_leaks_inflate_and_carry_their_name(subject):
    honest = evaluate_under(subject, "inductive")
    for name in ("legacy:label-graph", "legacy:partner", "legacy:label-graph+legacy:running-map"):
        leaked = evaluate_under(subject, name)
        assert leaked.protocol == name
        assert leaked.map_mean > honest.map_mean + 0.02


def test_dropping_the_last_batch_scores_fewer_queries(subject):
    assert len(evaluate_under(subject, "legacy:drop-last").directions[0].ids) == 32


@pytest.mark.parametrize("name", ["legacy:partnr", "inductive+legacy:partner", "bank+bank"])
def test_protocols_that_do_not_exist_or_do_not_join_are_refused(name):
    with pytest.raises(InputError):
        protocols_of(name)


@pytest.fixture
def memory(subject):
    """Let the zoo's encoders memorize the scored clips."""
    test = subject.splits.test
    labels = test.labels.numpy()
    for modality in test.modalities:
        rows = test.matrix(modality).numpy()
        ridge = rows.T @ rows + np.eye(rows.shape[1])
        zoo.TEST[modality] = {
            "rows": rows,
            "labels": labels,
            "table": {row.tobytes(): int(label) for row, label in zip(rows, labels, strict=True)},
            "weights": np.linalg.solve(ridge, rows.T @ np.eye(4)[labels]),
        }
    zoo.STATE.clear()


@pytest.mark.parametrize("encoder", zoo.LEAKY, ids=lambda encoder: encoder.__name__)
def test_every_leak_of_the_zoo_fails_or_is_not_claimed_to_be_checked(encoder, subject, memory):
    found = {one.check: one for one in audit(FunctionPipeline(encoder), subject.splits, CHECKS)}
    caught = zoo.LEAKY[encoder]
    if caught is not None:
        assert found[caught].verdict is Verdict.FAIL, found[caught].evidence
    if not found["nothing dropped"].failed:
        assert found["selection"].verdict is Verdict.NOT_CHECKABLE
    assert zoo.STATE == {}  # nothing was called in this process


@pytest.mark.slow
@pytest.mark.parametrize("encoder", zoo.HONEST, ids=lambda encoder: encoder.__name__)
def test_every_honest_encoder_of_the_zoo_passes(encoder, subject, memory):
    found = audit(FunctionPipeline(encoder), subject.splits, CHECKS)
    assert [(one.check, one.evidence) for one in found if one.failed] == []
    assert {one.check for one in found if one.verdict is Verdict.NOT_CHECKABLE} == {"selection", "metric"}


@pytest.mark.slow
def test_a_users_command_is_audited(subject, tmp_path):
    script = tmp_path / "embed.py"
    script.write_text(
        "import sys, h5py\n"
        "with h5py.File(sys.argv[1]) as given, h5py.File(sys.argv[2], 'w') as made:\n"
        "    for modality in ('audio', 'visual'):\n"
        "        if modality in given:\n"
        "            made[modality] = given[modality][:, :3]\n"
    )
    small = to_splits(synthetic(classes=2, train=8, valid=4, test=8, dimensions=(4, 5)))
    found = audit(CommandPipeline(f"{sys.executable} {script} {{input}} {{output}}"), small, CHECKS)
    assert not [f for f in found if f.failed]


HARMFUL = (
    "{{python}} -c \"import sys, h5py; m = h5py.File(sys.argv[2], 'w'); m['visual'] = [[1.0]]; {}; m.close()\""
    " {{input}} {{output}}"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("{python} -c 'raise SystemExit(3)' {input} {output}", "ended with 3"),
        ("/no/such/program {input} {output}", "cannot be started"),
        ("{python} -c pass {input} {output}", "wrote no {output}"),
        ("{python} 'open quote {input} {output}", "cannot be read"),
        ("{python} -c pass {foo}", "write both {input} and {output}"),
        ("", "write both {input} and {output}"),
        ('{python} -c \'import sys; open(sys.argv[2], "w").write("x")\' {input} {output}', "cannot be read as HDF5"),
        ("{python} -c 'import sys, h5py; h5py.File(sys.argv[2], \"w\")' {input} {output}", "holds no audio"),
        ("{python} -c 'import time; time.sleep(60)' {input} {output}", "longer than"),
        (HARMFUL.format("m['audio'] = h5py.ExternalLink(sys.argv[1], 'visual')"), "is a link to another file"),
        (HARMFUL.format("m.create_dataset('audio', (10**12, 4))"), "declares 16,000,000,000,000 bytes"),
        (HARMFUL.format("m.create_group('audio')"), "audio is not an array"),
    ],
)
def test_a_command_that_goes_wrong_is_one_sentence(command, says, subject):
    pipeline = CommandPipeline(command.replace("{python}", sys.executable), seconds=8.0)
    with pytest.raises(InputError) as caught:
        audit(pipeline, subject.splits, CHECKS, seconds=30.0)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_encoder_that_hangs_is_ended(subject):
    def hangs(features, labels):
        time.sleep(60)

    with pytest.raises(InputError, match=r"longer than 0\.5 s"):
        audit(FunctionPipeline(hangs), subject.splits, CHECKS, seconds=0.5)


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
