"""What every protocol must hold, present and future; those that leak are exceptions by name, and say so by theirs."""

from dataclasses import replace

import pytest
import torch

from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.options import OptionValues
from aadml.methods import METHODS
from aadml.methods.inputs import Inputs, fit_scaling
from aadml.methods.method import Context
from aadml.methods.training.settings import Training
from aadml.model.facts import Facts, MethodFacts
from aadml.model.model import Model
from aadml.protocols import PROTOCOLS
from aadml.protocols.evaluation import embed_under, evaluate_under, prepare_subject, protocols_of
from aadml.protocols.protocol import Subject

EVERY = sorted(PROTOCOLS)
SEES_LABELS = {
    "legacy:label-graph": "neighbors of the same true class",
    "legacy:batch-attention": "batches lie class by class",
}
SEES_OTHER_ITEMS = {
    "legacy:label-graph": "neighbors among the scored items",
    "legacy:batch-attention": "attention over the batch",
    "legacy:test-scaling": "statistics of the scored items",
    "legacy:test-selection": "the epoch is chosen on the scored items",
    "legacy:drop-last": "what is left out depends on how many items there are",
}
SEES_PARTNERS = SEES_OTHER_ITEMS | {"legacy:partner": "every item is mixed with its partner"}
HONEST_EMBEDDINGS = {"legacy:running-map": "its embeddings are honest, its metric is not"}


def trained(splits):
    context = Context({m: splits.train.dimension(m) for m in splits.train.modalities}, len(splits.train.class_names))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = METHODS["cca"](context, Training(), dimension=4)
    method.fits_validation = False  # as of a method with epochs, which legacy:test-selection needs
    facts = Facts(
        label="cca", method=MethodFacts("cca", OptionValues()), training=Training(), inputs=Inputs(),
        dimensions=context.dimensions, class_names=splits.train.class_names, clips=len(splits.train), seed=0,
    )  # fmt: skip
    encoder = Model(method, fit_scaling(splits.train), facts)
    method.fit(encoder.scaling.clips(splits.train), encoder.scaling.clips(splits.valid))
    return encoder


@pytest.fixture(scope="module")
def seen():
    """A run whose classes are all trained on."""
    splits = to_splits(synthetic(classes=4, train=60, valid=20, test=44, dimensions=(7, 9), difficulty=0.5))
    return Subject(trained(splits), splits, trained)


@pytest.fixture(scope="module")
def unseen(seen):
    """The same run, trained on half of the classes alone and scored on the others."""
    train, test = seen.splits.train, seen.splits.test
    splits = replace(
        seen.splits,
        train=train.select((train.labels < 2).nonzero()[:, 0]),
        test=test.select((test.labels >= 2).nonzero()[:, 0]),
    )
    return Subject(trained(splits), splits, trained)


@pytest.fixture(params=EVERY)
def name(request):
    return request.param


@pytest.fixture
def subject(name, seen, unseen):
    return unseen if name == "unseen-classes" else seen


def embedded(subject, name, split="test"):
    """The embeddings of a protocol, with what it does before anything is embedded."""
    (protocol,) = protocols_of(name)
    before = subject if protocol.before is None else protocol.before(subject, split)
    return embed_under(before, [protocol], split)


def with_test(subject, **changed):
    return replace(subject, splits=replace(subject.splits, test=replace(subject.splits.test, **changed)))


def assert_equal(one, other, rows=slice(None)):
    for modality, vectors in one.vectors.items():
        torch.testing.assert_close(vectors[rows], other.vectors[modality], atol=1e-5, rtol=1e-4)


def test_a_score_carries_its_protocol_and_lies_between_its_bounds(subject, name):
    found = evaluate_under(subject, name)
    assert (found.protocol, found.split) == (name, "test")
    result = found.to_json()
    assert result["protocol"] == name
    assert 0 < result["chance"] < 1
    assert 0 <= result["map_mean"] <= 1
    for side in result["directions"].values():
        low, high = side["map_bounds"]
        assert 0 <= low <= side["map"] <= high <= 1


def test_it_is_described_in_one_line():
    lines = {one.name: one.description for one in PROTOCOLS.listed()}
    assert lines.keys() == set(PROTOCOLS)
    assert all(line.endswith(".") and "\n" not in line for line in lines.values())
    assert len(set(lines.values())) == len(lines)


def test_the_same_question_has_the_same_answer_and_the_run_stays_as_it_was(subject, name):
    test = subject.splits.test
    before = {m: v.clone() for m, v in subject.encoder.embed_clips(test).vectors.items()}
    first, second = (evaluate_under(subject, name).to_json() for _ in range(2))
    assert first == second
    after = subject.encoder.embed_clips(test).vectors
    assert all(torch.equal(before[m], after[m]) for m in before)


def test_labels_change_no_embedding(subject, name):
    if name in SEES_LABELS:
        return
    order = torch.randperm(len(subject.splits.test), generator=torch.Generator().manual_seed(1))
    shuffled = with_test(subject, labels=subject.splits.test.labels[order])
    assert_equal(embedded(subject, name), embedded(shuffled, name))


def test_an_item_is_embedded_as_if_it_were_the_only_one(subject, name):
    if name in SEES_OTHER_ITEMS | {"legacy:partner": "its partner is another item"}:
        return
    whole, test = embedded(subject, name), subject.splits.test
    for row in (0, len(test) - 1):
        alone = replace(subject, splits=replace(subject.splits, test=test.select(torch.tensor([row]))))
        assert_equal(whole, embedded(alone, name), [row])


def test_a_partner_changes_no_embedding(subject, name):
    if name in SEES_PARTNERS:
        return
    test = subject.splits.test
    noise = {"visual": torch.randn(test.matrix("visual").shape, generator=torch.Generator().manual_seed(2))}
    changed = with_test(subject, features=dict(test.features) | noise)
    torch.testing.assert_close(embedded(changed, name).vectors["audio"], embedded(subject, name).vectors["audio"])


def test_every_item_is_scored(subject, name):
    if name == "legacy:drop-last":
        return
    assert embedded(subject, name).ids == subject.splits.test.ids


def test_what_leaks_is_called_legacy_and_nothing_else_is():
    leaking = SEES_LABELS | SEES_PARTNERS | HONEST_EMBEDDINGS
    assert leaking.keys() == {name for name in PROTOCOLS if name.startswith("legacy:")}


@pytest.mark.parametrize("name", sorted(SEES_LABELS))
def test_what_sees_labels_does_see_them(seen, name):
    changed = with_test(seen, labels=seen.splits.test.labels.roll(1))
    assert not torch.allclose(embedded(seen, name).vectors["audio"], embedded(changed, name).vectors["audio"])


@pytest.mark.parametrize("name", sorted(set(SEES_OTHER_ITEMS) - {"legacy:test-selection", "legacy:drop-last"}))
def test_what_sees_other_items_does_see_them(seen, name):
    half = replace(seen, splits=replace(seen.splits, test=seen.splits.test.select(torch.arange(20))))
    assert not torch.allclose(embedded(seen, name).vectors["audio"][:20], embedded(half, name).vectors["audio"])


@pytest.mark.parametrize("scaling", ["standard", "minmax", "l2", "none"])
def test_scaling_by_the_scored_clips_is_that_of_the_model_where_these_are_the_training_clips(seen, scaling):
    inputs = Inputs(scaling=scaling)
    facts = replace(seen.encoder.facts, inputs=inputs)
    encoder = replace(seen.encoder, facts=facts, scaling=fit_scaling(seen.splits.train, inputs))
    subject, _ = prepare_subject(replace(seen, encoder=encoder), "legacy:test-scaling", "train")
    own = {m: encoder.scaling.features(seen.splits.train[m], m) for m in seen.splits.train.modalities}
    for modality, values in own.items():
        assert torch.equal(subject.encoder.scaling.features(seen.splits.train[modality], modality), values)
